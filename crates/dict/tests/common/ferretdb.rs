//! A FerretDB of its own for each test file: MongoDB's protocol over a PostgreSQL server of its own.
#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::certificate::Certificate;
use crate::postgres_server;
use crate::process::{Process, again, on_free_ports};
use mongodb::bson::Document;
use mongodb::options::{ClientOptions, InsertManyOptions};
use mongodb::{Client, Collection};
use std::process::Command;
use tokio::runtime::Runtime;

/// The user of FerretDB at PostgreSQL, which knows the password; this has characters that a URI must encode.
pub const USER: &str = "reader";
pub const PASSWORD: &str = "it's :/?#[]@ s%cret";
/// FerretDB's SCRAM wants a message more than the driver sends; MongoDB says that none is wanted.
pub const OPTIONS: &str = "authMechanism=PLAIN";

pub struct Server {
    pub port: u16,
    /// The port where TLS is spoken, if there is a certificate.
    pub tls_port: Option<u16>,
    process: Process,
    storage: postgres_server::Server,
    certificate: Option<Certificate>,
    folder: tempfile::TempDir,
    client: Client,
    runtime: Runtime,
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(None)
    }

    pub fn start_with(certificate: Option<Certificate>) -> Server {
        let storage = postgres_server::Server::start();
        storage.execute(&format!("CREATE USER {USER} PASSWORD '{}'", PASSWORD.replace('\'', "''")));
        storage.execute(&format!("GRANT ALL ON DATABASE postgres TO {USER}"));
        let folder = tempfile::tempdir().unwrap();
        let ([port, tls_port], process) = on_free_ports(|[port, tls_port]| {
            run(&folder, &storage, port, certificate.as_ref().map(|certificate| (tls_port, certificate)))
        });
        let tls_port = certificate.as_ref().map(|_| tls_port);
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(async { client(port).await });
        let server = Server { port, tls_port, process, storage, certificate, folder, client, runtime };
        server.await_answer();
        server
    }

    /// Waits until a user with the password gets an answer.
    fn await_answer(&self) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let ask =
            || self.runtime.block_on(async { self.collection("nothing").find_one(Document::new()).await });
        while let Err(e) = ask() {
            assert!(std::time::Instant::now() < deadline, "FerretDB does not answer: {e}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    fn collection(&self, name: &str) -> Collection<Document> {
        self.client.database("app").collection(name)
    }

    /// Adds documents to a collection.
    pub fn insert(&self, collection: &str, documents: impl IntoIterator<Item = Document>) {
        let documents: Vec<Document> = documents.into_iter().collect();
        let collection = self.collection(collection);
        let options = InsertManyOptions::builder().ordered(false).build();
        self.runtime
            .block_on(async { collection.insert_many(documents).with_options(options).await })
            .unwrap();
    }

    /// Puts documents in the place of all that a collection has.
    pub fn replace(&self, collection: &str, documents: impl IntoIterator<Item = Document>) {
        let all = self.collection(collection);
        self.runtime.block_on(async { all.delete_many(Document::new()).await }).unwrap();
        self.insert(collection, documents);
    }

    /// From now on nothing is answered, until `go_on`.
    pub fn pause(&self) {
        self.process.signal("-STOP");
    }

    pub fn go_on(&self) {
        self.process.signal("-CONT");
    }

    /// Stops the server at once; connections break.
    pub fn stop(&mut self) {
        self.process.kill();
    }

    /// Starts it again, on the same port and with the same documents.
    pub fn start_again(&mut self) {
        let tls = self.tls_port.zip(self.certificate.as_ref());
        self.process = again(|| run(&self.folder, &self.storage, self.port, tls));
        self.await_answer();
    }
}

fn run(
    folder: &tempfile::TempDir,
    storage: &postgres_server::Server,
    port: u16,
    tls: Option<(u16, &Certificate)>,
) -> Option<Process> {
    let mut command = Command::new("ferretdb");
    command
        .args(["--handler=postgresql", "--telemetry=disable", "--debug-addr=-", "--log-level=ERROR"])
        .arg(format!("--listen-addr=127.0.0.1:{port}"))
        .arg(format!("--state-dir={}", folder.path().display()))
        .arg(format!("--postgresql-url=postgres://127.0.0.1:{}/postgres", storage.port))
        .arg("--test-batch-size=5000");
    if let Some((port, certificate)) = tls {
        command
            .arg(format!("--listen-tls=127.0.0.1:{port}"))
            .arg(format!("--listen-tls-cert-file={}", certificate.certificate.display()))
            .arg(format!("--listen-tls-key-file={}", certificate.key.display()));
    }
    Process::start(&mut command, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
}

async fn client(port: u16) -> Client {
    let mut options = ClientOptions::parse(format!("mongodb://127.0.0.1:{port}/app")).await.unwrap();
    let mut credential = mongodb::options::Credential::default();
    credential.username = Some(USER.into());
    credential.password = Some(PASSWORD.into());
    credential.mechanism = Some(mongodb::options::AuthMechanism::Plain);
    options.credential = Some(credential);
    options.server_selection_timeout = Some(std::time::Duration::from_secs(60));
    Client::with_options(options).unwrap()
}
