//! A ClickHouse server of its own for each test file, from Debian's package.

use crate::process::{Process, again, on_free_ports};
use std::process::Command;

pub struct Server {
    pub port: u16,
    process: Process,
    folder: tempfile::TempDir,
}

/// Three users: one may do everything, one only read, and change no setting; and one whose answers end after some rows.
const USERS: &str = "<yandex><profiles><default/><readonly><readonly>1</readonly></readonly>
<cut><readonly>1</readonly><max_result_rows>2</max_result_rows><max_block_size>1</max_block_size>
<result_overflow_mode>break</result_overflow_mode></cut></profiles>
<users><default><password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default>
<reader><password>it's secret</password><networks><ip>::/0</ip></networks><profile>readonly</profile><quota>default</quota></reader>
<cut><password>it's secret</password><networks><ip>::/0</ip></networks><profile>cut</profile><quota>default</quota></cut></users>
<quotas><default/></quotas></yandex>";

impl Server {
    pub fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("users.xml"), USERS).unwrap();
        let path = folder.path().display();
        let config = |port: u16| {
            format!(
                "<yandex><logger><level>warning</level><log>{path}/log</log><errorlog>{path}/errors</errorlog></logger>
                 <http_port>{port}</http_port><listen_host>127.0.0.1</listen_host><path>{path}/data/</path>
                 <tmp_path>{path}/tmp/</tmp_path><users_config>users.xml</users_config><default_profile>default</default_profile>
                 <default_database>default</default_database><mark_cache_size>1000000</mark_cache_size>
                 <timezone>Asia/Tokyo</timezone></yandex>"
            )
        };
        let ([port], process) = on_free_ports(|[port]| {
            std::fs::write(folder.path().join("config.xml"), config(port)).unwrap();
            run(&folder, port)
        });
        Server { port, process, folder }
    }

    /// Runs one statement.
    pub fn execute(&self, sql: &str) -> String {
        let request = ureq::post(format!("http://127.0.0.1:{}/", self.port));
        let mut answer = request.config().http_status_as_error(false).build().send(sql).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(answer.status().is_success(), "{text}\n{sql}");
        text
    }

    /// Stops the server at once; connections break.
    pub fn stop(&mut self) {
        self.process.kill();
    }

    /// Starts it again, on the same port.
    pub fn start_again(&mut self) {
        self.process = again(|| run(&self.folder, self.port));
    }
}

fn run(folder: &tempfile::TempDir, port: u16) -> Option<Process> {
    let mut command = Command::new("clickhouse-server");
    command
        .current_dir(folder.path())
        .arg(format!("--config-file={}", folder.path().join("config.xml").display()));
    Process::start(&mut command, || ureq::get(format!("http://127.0.0.1:{port}/ping")).call().is_ok())
}
