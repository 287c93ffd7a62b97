//! `granary server`.

mod memcached;
mod size;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use granary_server::Options;
use granary_sql::Executables;

/// Shown at the end of `granary server --help`.
pub const EXAMPLES: &str = "\
Examples:
  Serve the dictionaries kept in ./data:
    granary server --path data

  Make one, over an SQLite table, cached on SSD:
    curl http://127.0.0.1:8123/ --data-binary \"
      CREATE DICTIONARY users (id UInt64, name String, city String DEFAULT 'unknown')
      PRIMARY KEY id
      SOURCE(SQLITE(PATH '/srv/users.db' TABLE 'users'))
      LIFETIME(MIN 300 MAX 600)
      LAYOUT(SSD_CACHE(PATH 'users' FILE_SIZE 1073741824 WRITE_BUFFER_SIZE 1048576))\"

  Ask it:
    curl http://127.0.0.1:8123/ --data-binary \"SELECT dictGet('users', ('name', 'city'), 42)\"

  Let a ClickHouse read from it: this prints the CREATE DICTIONARY statement to run there:
    curl http://127.0.0.1:8123/dictionary/users/ddl

  Serve memcached's protocol as well, with 64 MiB of RAM and 1 GiB of SSD for its items:
    granary server --path data --memcached 127.0.0.1:11211 --memcached-memory 64MiB --memcached-flash 1GiB
    printf 'set greeting 0 0 5\\r\\nhello\\r\\nget greeting\\r\\nquit\\r\\n' | nc 127.0.0.1 11211

SIGTERM and Ctrl-C stop it: what is under way is answered, and the dictionaries and items are warm at the next start.";

/// Arguments of `granary server`.
#[derive(Args)]
pub struct Arguments {
    /// Folder for dictionaries: they are there, and warm, at the next start
    #[arg(long, value_name = "DIR", default_value = "granary-data", env = "GRANARY_PATH")]
    path: PathBuf,

    /// Where to listen for HTTP; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8123", env = "GRANARY_HTTP")]
    http: SocketAddr,

    /// Allow dictionaries to run programs: SOURCE(EXECUTABLE(...))
    #[arg(long, env = "GRANARY_ALLOW_EXECUTABLE")]
    allow_executable: bool,

    #[command(flatten)]
    memcached: memcached::Arguments,
}

/// Serves until it is told to stop.
pub fn run(arguments: Arguments) -> ExitCode {
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let memcached = arguments.memcached.start(&arguments.path)?;
    let user_files = arguments.path.join("user_files");
    let options = Options {
        session: granary_sql::Options {
            path: Some(arguments.path),
            executables: if arguments.allow_executable { Executables::Allowed } else { Executables::Refused },
            user_files: Some(user_files),
        },
        http: arguments.http,
    };
    let ready = |http| {
        let mut text = format!("Granary listens on http://{http}\n");
        if let Some(memcached) = &memcached {
            text += &format!("Granary serves memcached on {}\n", memcached.address());
        }
        // At once: whoever waits for the first line may not wait for more.
        eprint!("{text}");
    };
    granary_server::run(options, ready)?;
    Ok(memcached.map_or(Ok(()), granary_memcached::Server::stop)?)
}
