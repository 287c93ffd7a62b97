//! Servers of which all connections ask the same one: others may get its rows later.

use super::server::Server;
use super::{BatchSink, Changes, NewestChange, Source, SourceFactory};
use crate::error::{Code, DictError};
use arrow::array::{ArrayRef, RecordBatch};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stands between the server and its watermark.
const SEPARATOR: char = ' ';

/// Connects to the first server that can be connected to; the error is that of the last. All connections move to the
/// server that one of them had to move to.
pub(super) fn first<S: Source + 'static>(
    servers: Vec<Server>,
    connect: impl Fn(&Server) -> Result<S, DictError> + Send + Sync + 'static,
) -> SourceFactory {
    let connect = move |server: &Server| Ok(Box::new(connect(server)?) as Box<dyn Source>);
    if let [server] = &servers[..] {
        let server = server.clone();
        return Arc::new(move || connect(&server));
    }
    let run = fastrand::u64(..);
    let replicas = Arc::new(Replicas { servers, connect, run, chosen: Mutex::default() });
    Arc::new(move || Ok(Box::new(Replica::connect(&replicas)?)))
}

struct Replicas<C> {
    servers: Vec<Server>,
    connect: C,
    /// Tells this run of the program from others.
    run: u64,
    chosen: Mutex<ChosenServer>,
}

/// The server that is asked.
#[derive(Clone, Copy, Default, PartialEq)]
struct ChosenServer {
    /// `None`: none has been asked yet.
    place: Option<usize>,
    /// How often it changed. Then it is unknown which rows of other servers are cached.
    moves: u64,
}

type ChosenConnection = (ChosenServer, Box<dyn Source>);

impl<C: Fn(&Server) -> Result<Box<dyn Source>, DictError>> Replicas<C> {
    fn chosen(&self) -> MutexGuard<'_, ChosenServer> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to the first of some servers that can be connected to; this is then the one that is asked.
    fn first(&self, places: impl Iterator<Item = usize>) -> Result<ChosenConnection, DictError> {
        let mut failure = DictError::bad_arguments("SOURCE has no server");
        for place in places {
            match (self.connect)(&self.servers[place]) {
                Ok(source) => {
                    let mut chosen = self.chosen();
                    chosen.moves += u64::from(chosen.place.is_some_and(|before| before != place));
                    chosen.place = Some(place);
                    return Ok((*chosen, source));
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

/// A connection to the server that is asked.
struct Replica<C> {
    replicas: Arc<Replicas<C>>,
    chosen: ChosenServer,
    source: Box<dyn Source>,
}

impl<C: Fn(&Server) -> Result<Box<dyn Source>, DictError>> Replica<C> {
    fn connect(replicas: &Arc<Replicas<C>>) -> Result<Self, DictError> {
        let (chosen, source) = replicas.first(0..replicas.servers.len())?;
        Ok(Replica { replicas: Arc::clone(replicas), chosen, source })
    }

    /// The connection, moved to the server that is asked if that has changed.
    fn current(&mut self) -> Result<&mut dyn Source, DictError> {
        let chosen = *self.replicas.chosen();
        if chosen != self.chosen {
            let all = 0..self.replicas.servers.len();
            (self.chosen, self.source) = self.replicas.first(chosen.place.into_iter().chain(all))?;
        }
        Ok(self.source.as_mut())
    }

    /// The name of the server that the connection is to. After a move it is valid in this run alone: it is unknown from
    /// which server a row was cached.
    fn name(&self) -> String {
        let Server { host, port, .. } = &self.replicas.servers[self.chosen.place.unwrap_or_default()];
        match self.chosen.moves {
            0 => format!("{host}:{port}"),
            moves => format!("{host}:{port}#{:x}.{moves}", self.replicas.run),
        }
    }

    /// A watermark of the server that the connection is to; `None`: it is another server's.
    fn own<'w>(&self, watermark: &'w str) -> Option<&'w str> {
        let (name, watermark) = watermark.split_once(SEPARATOR)?;
        (name == self.name()).then_some(watermark)
    }
}

impl<C> Source for Replica<C>
where
    C: Fn(&Server) -> Result<Box<dyn Source>, DictError> + Send + Sync,
{
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        self.current()?.load(keys)
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        self.current()?.load_all(sink)
    }

    fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
        self.current()?;
        let own = watermark.map(|watermark| self.own(watermark));
        if own == Some(None) {
            return Ok(NewestChange::behind());
        }
        let newest = self.source.newest_change(own.flatten())?;
        let name = self.name();
        Ok(NewestChange { next: newest.next.map(|next| format!("{name}{SEPARATOR}{next}")), ..newest })
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        self.current()?;
        match self.own(watermark) {
            Some(watermark) => self.source.changes(watermark),
            None => Err(DictError::new(
                Code::NetworkError,
                format!("{} is asked now, which may know of other changes than {watermark}", self.name()),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A server that is its own port.
    struct Port(u16);

    impl Source for Port {
        fn load(&mut self, _keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
            Err(DictError::bad_arguments(self.0.to_string()))
        }

        fn load_all(&mut self, _sink: &mut BatchSink<'_>) -> Result<(), DictError> {
            Ok(())
        }

        fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
            let next = Some(format!("{} {}", self.0, watermark.unwrap_or_default()));
            Ok(NewestChange { next, count: Some("1".into()), ..NewestChange::default() })
        }

        fn changes(&mut self, _watermark: &str) -> Result<Changes, DictError> {
            Ok(Changes::TooMany)
        }
    }

    #[test]
    fn all_connections_are_to_one_server_whose_watermarks_are_its_own() {
        let down: Arc<Mutex<Vec<u16>>> = Arc::default();
        let factory = {
            let down = Arc::clone(&down);
            let server = |port| Server {
                host: "h".into(),
                port,
                user: String::new(),
                password: String::new(),
                database: String::new(),
            };
            first(vec![server(1), server(2)], move |server| {
                match down.lock().unwrap().contains(&server.port) {
                    true => Err(DictError::new(Code::NetworkError, format!("{} is down", server.port))),
                    false => Ok(Port(server.port)),
                }
            })
        };
        let said = |source: &mut Box<dyn Source>| source.load(&[]).unwrap_err().message().to_string();
        let mut first = factory().unwrap();
        let watermark = first.newest_change(None).unwrap().next.unwrap();
        assert_eq!((said(&mut first).as_str(), watermark.as_str()), ("1", "h:1 1 "));
        assert_eq!(first.newest_change(Some(&watermark)).unwrap().next.unwrap(), "h:1 1 1 ");
        // A second connection has to go elsewhere, and the first follows.
        *down.lock().unwrap() = vec![1];
        let mut second = factory().unwrap();
        assert_eq!((said(&mut second), said(&mut first)), ("2".into(), "2".into()));
        assert!(first.newest_change(Some(&watermark)).unwrap().is_behind(), "it is another's");
        first.changes(&watermark).unwrap_err();
        let next = first.newest_change(None).unwrap().next.unwrap();
        assert!(next.starts_with("h:2#") && next.ends_with(".1 2 "), "{next}");
        first.changes(&next).unwrap();
        // A watermark saved before there were replicas belongs to no server.
        assert!(first.newest_change(Some("2026-01-01 00:00:00")).unwrap().is_behind());
        // A new connection finds the first server again.
        down.lock().unwrap().clear();
        assert_eq!(said(&mut factory().unwrap()), "1");
        assert_eq!((said(&mut second), said(&mut first)), ("1".into(), "1".into()));
        assert!(
            first.newest_change(Some(&watermark)).unwrap().is_behind(),
            "there are rows of the other one since"
        );
        *down.lock().unwrap() = vec![1, 2];
        assert_eq!(factory().err().unwrap().message(), "2 is down");
    }
}
