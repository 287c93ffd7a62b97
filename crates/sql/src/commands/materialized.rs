//! Materialized views: what is inserted into their source goes through their query, and on into a table.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, SetExpr, Statement, TableAlias, TableFactor, VisitMut, VisitorMut,
};

use super::create::{as_query, declared, defaults, engine_clause, found};
use super::engines;
use super::insert::{lend, put};
use crate::catalogue::{Feed, FullName, LocalTable, MATERIALIZED_VIEW, Missing, Target, View};
use crate::error::{Error, Result};
use crate::format::shown_name;
use crate::output::Output;
use crate::query;
use crate::session::Session;
use crate::statement::CreateMaterializedView;

/// CREATE MATERIALIZED VIEW.
pub async fn create(session: &Session, statement: CreateMaterializedView, text: &str) -> Result<()> {
    let catalogue = session.catalogue();
    let of = |name: Option<String>| name.unwrap_or_else(|| session.database());
    let (database, name) = (of(statement.name.database), statement.name.name);
    if statement.exists == Missing::IsFine && catalogue.entry(&database, &name).is_some() {
        return Ok(());
    }
    let feed = feed_of(session, text, statement.head)?;
    let columns = query::columns(session, text, statement.head).await?;
    let schema = match statement.columns.as_slice() {
        [] => found(&columns, &[])?,
        columns => declared(session, columns).await?,
    };
    let target = match statement.to {
        Some(to) => Target::Table((of(to.database), to.name)),
        None => Target::Inner,
    };
    let (target_database, target_name) = target.name(&database, &name);
    engines::check(&statement.engine)?;
    let storage = [vec![engine_clause(&statement.engine)], statement.storage].concat();
    let clauses = match target {
        Target::Table(_) => {
            catalogue.table_to_fill(&target_database, &target_name)?;
            Vec::new()
        }
        Target::Inner => {
            let defaults = defaults(&statement.columns);
            let inner =
                LocalTable::new(statement.engine.name, storage.clone(), Arc::clone(&schema), defaults);
            catalogue.create_table(&target_database, &target_name, inner, Missing::IsError)?;
            storage
        }
    };
    let view = LocalTable::new(MATERIALIZED_VIEW.to_owned(), clauses, schema, defaults(&statement.columns));
    let view = view.over(target.clone());
    view.set_feed(feed);
    if let Err(error) = catalogue.create_table(&database, &name, view, Missing::IsError) {
        if target == Target::Inner {
            catalogue.drop_table(&target_database, &target_name, Missing::IsFine)?;
        }
        return Err(error);
    }
    if statement.populates {
        let output = query::run_behind(session, text, statement.head).await?;
        pass_on(session, output, &(target_database, target_name), 0).await?;
    }
    Ok(())
}

/// ALTER TABLE .. MODIFY QUERY.
pub async fn modify(session: &Session, (database, name): FullName, text: &str, head: usize) -> Result<()> {
    let table = session.catalogue().table_to_fill(&database, &name)?;
    if table.feed().is_none() {
        return Err(Error::incorrect_query(format!("{database}.{name} is not a materialized view")));
    }
    query::columns(session, text, head).await?;
    table.set_feed(feed_of(session, text, head)?);
    Ok(())
}

/// Passes rows that were inserted into its source through a view.
pub async fn feed(
    session: &Session,
    (database, name): FullName,
    view: &LocalTable,
    rows: &[RecordBatch],
    depth: usize,
) -> Result<()> {
    let (Some(feed), Some(target)) = (view.feed(), &view.target) else { return Ok(()) };
    let inside = session.within(&feed.query.database)?;
    let Some(first) = rows.first() else { return Ok(()) };
    let lent = lend(&inside, first.schema(), rows.to_vec())?;
    let mut parsed = query::parse(&feed.query.text, feed.query.head)?;
    // It never stops before the end.
    let _ = parsed.0.visit(&mut Lender { feed: &feed, lent: lent.name() });
    let output = query::run_parsed(&inside, parsed).await?;
    pass_on(&inside, output, &target.name(&database, &name), depth).await
}

/// Inserts what a view's query gives, as far as the table has columns for it.
async fn pass_on(session: &Session, mut output: Output, to: &FullName, depth: usize) -> Result<()> {
    let target = session.catalogue().table_to_fill(&to.0, &to.1)?.schema();
    let names: Vec<String> =
        output.schema.fields().iter().map(|field| shown_name(field.name()).to_owned()).collect();
    let kept: Vec<usize> = (0..names.len()).filter(|&i| target.index_of(&names[i]).is_ok()).collect();
    let names: Vec<String> = kept.iter().map(|&i| names[i].clone()).collect();
    let mut batches = Vec::new();
    while let Some(batch) = output.next().await {
        batches.push(batch?.project(&kept)?);
    }
    put(session, to, Some(&names), &batches, depth + 1).await
}

/// What the query behind the first tokens of a text makes of rows, and of which.
fn feed_of(session: &Session, text: &str, head: usize) -> Result<Feed> {
    let database = session.database();
    let (mut statement, ..) = query::parse(text, head)?;
    let source = match &mut statement {
        Statement::Query(query) => source(&mut query.body),
        _ => None,
    };
    let source = source.and_then(|source| full_name(source, &database));
    let query = View { text: text.to_owned(), head, database };
    match source {
        Some(source) => Ok(Feed { source, query, clause: as_query(text, head)? }),
        None => Err(Error::not_implemented("A materialized view reads from a table: SELECT .. FROM table")),
    }
}

/// The table that a query begins with.
fn source(body: &mut SetExpr) -> Option<&mut TableFactor> {
    match body {
        SetExpr::Query(query) => source(&mut query.body),
        SetExpr::SetOperation { left, .. } => source(left),
        SetExpr::Select(select) => match &mut select.from.first_mut()?.relation {
            TableFactor::Derived { subquery, .. } => source(&mut subquery.body),
            table @ TableFactor::Table { args: None, .. } => Some(table),
            _ => None,
        },
        _ => None,
    }
}

fn full_name(table: &TableFactor, database: &str) -> Option<FullName> {
    let TableFactor::Table { name, args: None, .. } = table else { return None };
    let parts: Option<Vec<&str>> =
        name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str())).collect();
    match parts?.as_slice() {
        [name] => Some((database.to_owned(), (*name).to_owned())),
        [database, name] => Some(((*database).to_owned(), (*name).to_owned())),
        _ => None,
    }
}

/// Puts lent rows in the place of a view's source.
struct Lender<'a> {
    feed: &'a Feed,
    lent: &'a str,
}

impl VisitorMut for Lender<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let is_source =
            full_name(factor, &self.feed.query.database).is_some_and(|name| name == self.feed.source);
        if let TableFactor::Table { name, alias, .. } = factor
            && is_source
        {
            *name = ObjectName::from(vec![Ident::with_quote('"', self.lent)]);
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: Ident::with_quote('"', self.feed.source.1.as_str()),
                columns: Vec::new(),
                at: None,
            });
        }
        ControlFlow::Continue(())
    }
}
