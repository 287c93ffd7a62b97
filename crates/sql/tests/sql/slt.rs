//! Runs the `.slt` files. Those whose names do not begin with `granary_` expect ClickHouse's answers, and run against
//! it as well.

use std::path::Path;
use std::sync::Arc;

use granary_sql::format::{self, Format};
use granary_sql::{Error, Options, Session};
use sqllogictest::{DBOutput, DefaultColumnType, Runner};
use tokio::runtime::Runtime;

struct Granary {
    session: Session,
    runtime: Arc<Runtime>,
}

impl sqllogictest::DB for Granary {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        // The runner has a runtime of its own on this thread, in which ours cannot block.
        std::thread::scope(|scope| scope.spawn(|| self.answer(sql)).join().expect("no panic in a statement"))
    }

    fn engine_name(&self) -> &str {
        "granary"
    }
}

impl Granary {
    /// The rows as in TabSeparated, except that quotes and backslashes are plain, and NULL and the empty string spelled
    /// as by sqllogictest.
    fn answer(&self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let mut text = Vec::new();
        let mut columns = 0;
        for statement in granary_sql::split(sql)? {
            let mut output = self.runtime.block_on(self.session.execute(&statement))?;
            columns = output.schema.fields().len();
            let mut writer = format::open(Format::TabSeparated, output.schema.clone(), &mut text)?;
            while let Some(batch) = self.runtime.block_on(output.next()) {
                writer.write(&batch?)?;
            }
            writer.finish(output.progress().read())?;
        }
        if columns == 0 {
            return Ok(DBOutput::StatementComplete(0));
        }
        let cell = |cell: &str| match cell {
            "" => "(empty)".to_owned(),
            "\\N" => "NULL".to_owned(),
            cell => cell.replace("\\'", "'").replace("\\\\", "\\"),
        };
        let text = String::from_utf8(text).expect("TabSeparated of UTF-8 strings");
        let rows = text.lines().map(|line| line.split('\t').map(cell).collect()).collect();
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows })
    }
}

#[test]
fn slt_files() {
    let runtime = Arc::new(Runtime::new().unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    files.sort();
    assert!(files.len() >= 5, "the files are there");
    let mut failures = Vec::new();
    for file in files {
        let mut runner = Runner::new(|| async {
            let options = Options { allow_executable: true, ..Options::default() };
            Ok(Granary { session: Session::open(options)?, runtime: Arc::clone(&runtime) })
        });
        if let Err(error) = runner.run_file(&file) {
            failures.push(format!("{}", error.display(false)));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}
