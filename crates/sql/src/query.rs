//! Queries: parsed, rewritten, planned by DataFusion, run on all cores.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use datafusion::execution::context::SQLOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast::{Expr, Statement};
use datafusion::sql::sqlparser::dialect::ClickHouseDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::StreamExt;
use granary_dict::tokenize;

use crate::error::{Error, Result};
use crate::limits::PARTITION_BATCHES_AHEAD;
use crate::output::Output;
use crate::planning::task_context;
use crate::rewrite::{Extras, rewrite};
use crate::session::{Session, apply};
use crate::statement::{Tail, mend, take_named_expressions};

/// Runs a query.
pub async fn run(session: &Session, text: &str) -> Result<Output> {
    let (mut statement, named, tail) = parse(text)?;
    let mut extras = rewrite(&mut statement, named)?;
    extras.format = tail.format.or(extras.format);
    extras.settings.extend(tail.settings);
    let format = extras.format.as_deref().map(str::parse).transpose()?;
    for file in &extras.files {
        let input = file.format.as_deref().map(str::parse).transpose()?;
        let path = session.catalogue.query_file(&file.path)?;
        session.add_file(&file.table, &path, input).await?;
    }
    let planned = plan(session, statement, &extras).await;
    for file in &extras.files {
        // The plan holds the file now; the name is not needed any more.
        session.remove_file(&file.table)?;
    }
    let (plan, context) = planned?;
    let schema = plan.schema();
    let stream = stream(&plan, &context)?;
    Ok(Output { schema, format, stream, plan: Some(plan) })
}

/// The statement, the expressions that its WITH names, and what stands behind it.
fn parse(text: &str) -> Result<(Statement, HashMap<String, Expr>, Tail)> {
    let wrong = |error: &dyn Display| Error::syntax_error(format!("Syntax error: {error}"));
    let mut tokens = tokenize(text).map_err(|error| wrong(&error))?;
    let tail = mend(&mut tokens);
    let named = take_named_expressions(&mut tokens);
    let mut parser = Parser::new(&ClickHouseDialect {}).with_tokens_with_locations(tokens);
    let statement = parser.parse_statement().map_err(|error| wrong(&error))?;
    let end = |parser: &Parser<'_>| match parser.peek_token().token {
        Token::EOF => Ok(()),
        token => Err(Error::syntax_error(format!("Syntax error: unexpected {token}"))),
    };
    end(&parser)?;
    let named = named.into_iter().map(|named| {
        let mut parser = Parser::new(&ClickHouseDialect {}).with_tokens_with_locations(named.tokens);
        let expr = parser.parse_expr().map_err(|error| wrong(&error))?;
        end(&parser)?;
        Ok((named.name, expr))
    });
    Ok((statement, named.collect::<Result<_>>()?, tail))
}

async fn plan(
    session: &Session,
    statement: Statement,
    extras: &Extras,
) -> Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
    let mut loan = session.planning.lend(&session.context);
    let state = &mut loan.state;
    apply(&extras.settings, state.config_mut())?;
    state.config_mut().options_mut().catalog.default_schema = session.catalogue.current();
    let plan = state.statement_to_plan(PlannedStatement::Statement(Box::new(statement))).await?;
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(&plan)
        .map_err(|error| Error::not_implemented(error.strip_backtrace()))?;
    let plan = state.create_physical_plan(&plan).await?;
    let context = task_context(state);
    if extras.settings.is_empty() {
        session.planning.take_back(loan);
    }
    Ok((plan, context))
}

/// All partitions one after the other. Later ones run ahead on other threads, so that the rows keep the order
/// of their table and all cores work.
fn stream(plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
    let partitions = plan.output_partitioning().partition_count();
    if partitions == 1 {
        // Its own task all the same: what reads the stream may be busy writing.
        return ahead(plan, 0, context);
    }
    let streams = (0..partitions).map(|i| ahead(plan, i, context)).collect::<Result<Vec<_>>>()?;
    let all = futures::stream::iter(streams).flatten();
    Ok(Box::pin(RecordBatchStreamAdapter::new(plan.schema(), all)))
}

fn ahead(
    plan: &Arc<dyn ExecutionPlan>,
    partition: usize,
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let mut builder = RecordBatchReceiverStreamBuilder::new(plan.schema(), PARTITION_BATCHES_AHEAD);
    let sender = builder.tx();
    let mut stream = plan.execute(partition, Arc::clone(context))?;
    builder.spawn(async move {
        while let Some(batch) = stream.next().await {
            let failed = batch.is_err();
            if sender.send(batch).await.is_err() || failed {
                break;
            }
        }
        Ok(())
    });
    Ok(builder.build())
}
