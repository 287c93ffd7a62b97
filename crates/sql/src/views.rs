//! Views: a query in place of a name in FROM. Names in it resolve in the database that the view was made in.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, Query, Statement, TableAlias, TableFactor, VisitMut, VisitorMut,
};
use granary_dialect::rewrite::{Extras, Named, WITH_TIMES, rewrite};
use granary_dialect::statement::{ParsedQuery, parse_query};
use granary_dialect::{Error, FullName, Result};

use crate::catalogue::View;
use crate::limits::VIEWS_DEEP_MAX;
use crate::session::Session;
use crate::session_scope::SessionScope;

/// Replaces the names of views by their queries, in a rewritten statement.
///
/// # Errors
/// TOO_DEEP_RECURSION for views nested too deep, and errors in their queries.
pub fn expand(session: &Session, statement: &mut Statement, extras: &mut Extras) -> Result<()> {
    let is_view = |named: &Named| match named {
        Named::Object(FullName { database, name }) => {
            let name = name.strip_suffix(WITH_TIMES).unwrap_or(name);
            session.catalogue().view(database, name).is_some()
        }
        Named::AnyDictionary | Named::File => false,
    };
    if !extras.named.iter().any(is_view) {
        return Ok(());
    }
    let database = session.database();
    Expander { session, extras, database: &database, names: Names::AsTheyAre, around: Vec::new(), depth: 0 }
        .expand(statement)
}

/// What to do with names without a database.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Nothing: they are in the session's database.
    AsTheyAre,
    /// Qualify them with the view's database.
    Full,
}

struct Expander<'a> {
    session: &'a Session,
    extras: &'a mut Extras,
    database: &'a str,
    names: Names,
    /// The WITH clauses of the enclosing queries.
    around: Vec<With>,
    depth: usize,
}

/// Names of a query's CTEs: later CTEs and the query itself see them in place of tables.
struct With {
    names: Vec<String>,
    /// How many of them are in scope here.
    known: usize,
}

impl With {
    fn of(query: &Query) -> With {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        let names: Vec<String> = tables.map(|table| table.alias.name.value.clone()).collect();
        With { names, known: 0 }
    }

    fn names(&self, table: &str) -> bool {
        self.names[..self.known].iter().any(|name| name == table)
    }
}

impl Expander<'_> {
    fn expand(mut self, statement: &mut Statement) -> Result<()> {
        match statement.visit(&mut self) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return Ok(()) };
        let parts: Option<Vec<&str>> =
            name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str())).collect();
        let (database, table) = match parts.as_deref() {
            Some([table]) if self.around.iter().any(|with| with.names(table)) => return Ok(()),
            Some([table]) => (self.database, *table),
            Some([.., database, table]) => (*database, *table),
            Some([]) | None => return Ok(()),
        };
        let shown = table.strip_suffix(WITH_TIMES).unwrap_or(table);
        if let Some(view) = self.session.catalogue().view(database, shown) {
            let alias = alias.take().unwrap_or_else(|| TableAlias {
                explicit: true,
                name: Ident::with_quote('"', shown),
                columns: Vec::new(),
                at: None,
            });
            let subquery = self.query_of(&view)?;
            *factor = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
        } else if self.names == Names::Full && name.0.len() == 1 {
            let database = ObjectNamePart::Identifier(Ident::with_quote('"', self.database));
            *name = ObjectName([vec![database], std::mem::take(&mut name.0)].concat());
        }
        Ok(())
    }

    /// A view's query, rewritten and with qualified names.
    fn query_of(&mut self, view: &View) -> Result<Box<Query>> {
        if self.depth == VIEWS_DEEP_MAX {
            let message =
                format!("Views of views may be {VIEWS_DEEP_MAX} deep; is one of them made of itself?");
            return Err(Error::too_deep_recursion(message));
        }
        let ParsedQuery { mut statement, named, .. } = parse_query(&view.text, view.head)?;
        let scope = SessionScope { database: view.database.clone(), ..self.session.scope() };
        let extras = rewrite(&mut statement, named, &scope)?;
        self.extras.files.extend(extras.files);
        self.extras.named.extend(extras.named);
        let inner = Expander {
            session: self.session,
            extras: self.extras,
            database: &view.database,
            names: Names::Full,
            around: Vec::new(),
            depth: self.depth + 1,
        };
        inner.expand(&mut statement)?;
        match statement {
            Statement::Query(query) => Ok(query),
            other => Err(Error::incorrect_query(format!("A view is a SELECT, not {other}"))),
        }
    }
}

impl VisitorMut for Expander<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.around.push(With::of(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.around.pop();
        if let Some(with) = self.around.last_mut() {
            // The queries of WITH are visited before all others in the query.
            with.known = with.names.len().min(with.known + 1);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match self.factor(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
