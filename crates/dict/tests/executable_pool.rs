//! Dictionaries over programs that stay.

mod common;

use arrow::array::{ArrayRef, Int32Array};
use common::*;
use granary_dict::{DictError, Dictionary, Environment};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn try_open(
    folder: &Path,
    columns: &str,
    key: &str,
    source: &str,
    layout: &str,
) -> Result<Dictionary, DictError> {
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(1000)" };
    let sql = format!(
        "CREATE DICTIONARY e ({columns}) PRIMARY KEY {key} SOURCE(EXECUTABLE_POOL({source})) LAYOUT({layout}) {lifetime}"
    );
    let environment = Environment { allow_executable: true, ..Environment::new(folder) };
    Dictionary::open(definition(&sql), &environment)
}

fn open(source: &str, layout: &str) -> Dictionary {
    try_open(Path::new("/"), "id UInt64, v UInt64", "id", source, layout).unwrap()
}

/// A Python program: what it does with each line, after `start`.
fn program(folder: &Path, name: &str, code: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, format!("import sys, os, time, struct, json\n{code}\n")).unwrap();
    format!("exec python3 -u {}", path.display())
}

fn lines(row: &str) -> String {
    format!("for line in sys.stdin:\n    key = line.rstrip(chr(10))\n    {row}\n    sys.stdout.flush()")
}

#[test]
fn an_answer_has_so_many_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let command = program(folder.path(), "long", &lines("print(key, key.zfill(100), sep=chr(9))"));
    let sql = format!(
        "CREATE DICTIONARY e (id UInt64, v String) PRIMARY KEY id LAYOUT(DIRECT()) \
         SOURCE(EXECUTABLE_POOL(COMMAND '{command}' FORMAT TabSeparated))"
    );
    let environment = Environment { allow_executable: true, ..Environment::new(folder.path()) };
    an_answer_read_whole_is_bounded(
        |environment| Dictionary::open(definition(&sql), environment).unwrap(),
        environment,
    );
}

#[test]
fn one_process_answers_request_after_request() {
    let folder = tempfile::tempdir().unwrap();
    let binary = "while True:\n    d = sys.stdin.buffer.read(8)\n    if not d: break\n    \
                  sys.stdout.buffer.write(d + struct.pack('<Q', os.getpid())); sys.stdout.flush()";
    for (format, code) in [
        ("TabSeparated", lines("print(key, os.getpid(), sep=chr(9))")),
        ("CSV", lines("print(key, os.getpid(), sep=',')")),
        ("JSONEachRow", lines("print(json.dumps({'v': os.getpid(), 'id': json.loads(key)['id']}))")),
        ("RowBinary", binary.to_string()),
    ] {
        let command = program(folder.path(), format, &code);
        let dictionary = open(&format!("COMMAND '{command}' FORMAT {format}"), "DIRECT()");
        let pids = |keys: &[u64]| values(&dictionary.get(&[0], &u64s(keys.to_vec())).unwrap().columns[0]);
        let first = pids(&[7, 1, 30]);
        assert!(first[0] > 0 && first[0] == first[1] && first[1] == first[2], "{format}: {first:?}");
        assert_eq!(pids(&[5]), [first[0]], "{format}: the same process");
        let pid = first[0];
        drop(dictionary);
        await_end(pid);
    }
}

/// Waits until a process of a dictionary has ended: the source's thread may be slow to end it.
fn await_end(pid: u64) {
    until("the process ends", || !Path::new(&format!("/proc/{pid}")).exists());
}

/// The array around the rows, and the mark before it, come in any pieces; the next answer has its own.
#[test]
fn an_array_of_rows_comes_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let code = "\
def say(text):
    sys.stdout.buffer.write(text); sys.stdout.flush(); time.sleep(0.05)
while True:
    keys = [sys.stdin.readline() for _ in range(3)]
    if not keys[2]: break
    rows = [json.dumps({'id': json.loads(key)['id'], 'v': os.getpid()}).encode() for key in keys]
    for text in [b'\\xef\\xbb', b'\\xbf', b'[\\n', rows[0] + b',', b'\\n', rows[1] + b',\\n' + rows[2], END]: say(text)";
    for end in [
        "b'\\n', b']\\n'",
        "b'\\n', b']', b'\\n'",
        "b'\\n ', b' ]', b'\\r', b'\\n'",
        "b'\\n]', b'\\n'",
        "b']', b'\\n'",
    ] {
        let command = program(folder.path(), "p", &code.replace("END", end));
        let dictionary = open(&format!("COMMAND '{command}' FORMAT JSONEachRow"), "DIRECT()");
        let pids = |keys: [u64; 3]| values(&dictionary.get(&[0], &u64s(keys)).unwrap().columns[0]);
        let first = pids([7, 1, 30]);
        assert!(first[0] > 0 && first.iter().all(|pid| *pid == first[0]), "{end}: {first:?}");
        assert_eq!(pids([3, 2, 5]), first, "{end}: the same process");
    }
}

/// SYSTEM RELOAD DICTIONARY: the program may have been mended.
#[test]
fn a_reload_starts_the_program_anew() {
    let folder = tempfile::tempdir().unwrap();
    let code = |version: u64| lines(&format!("print(key, {version}, os.getpid(), sep=chr(9))"));
    let command = program(folder.path(), "p", &code(1));
    let source = format!("COMMAND '{command}' FORMAT TSV");
    let columns = "id UInt64, version UInt64, pid UInt64";
    let dictionary = try_open(Path::new("/"), columns, "id", &source, "CACHE(SIZE_IN_CELLS 10)").unwrap();
    let ask = |key: u64| {
        let answer = dictionary.get(&[0, 1], &u64s([key])).unwrap();
        (values(&answer.columns[0])[0], values(&answer.columns[1])[0])
    };
    let (version, pid) = ask(1);
    program(folder.path(), "p", &code(2));
    assert_eq!((version, ask(2)), (1, (1, pid)));
    dictionary.reload().unwrap();
    // It ends even if it is not asked.
    await_end(pid);
    assert_eq!((ask(1).0, ask(2).0), (2, 2));
}

#[test]
fn big_batches_do_not_lock_up() {
    let folder = tempfile::tempdir().unwrap();
    let command = program(folder.path(), "p", &lines("print(key, int(key) * 10, sep=chr(9))"));
    let dictionary = open(&format!("COMMAND '{command}' FORMAT TSV"), "DIRECT()");
    let answer = dictionary.get(&[0], &u64s(0..100_000)).unwrap();
    assert_eq!(values(&answer.columns[0])[99_999], 999_990);
}

#[test]
fn implicit_keys_and_chunk_headers() {
    let folder = tempfile::tempdir().unwrap();
    let code = "while True:\n    count = sys.stdin.readline()\n    if not count: break\n    \
                keys = [sys.stdin.readline() for _ in range(int(count))]\n    \
                print('\\n'.join(f'{count.strip()}\\t{len(key)}' for key in keys), flush=True)";
    let command = program(folder.path(), "p", code);
    let source = format!("COMMAND '{command}' FORMAT TabSeparated IMPLICIT_KEY 1 SEND_CHUNK_HEADER 1");
    let columns = "a Int32, b String, v UInt64, w UInt64";
    let dictionary = try_open(folder.path(), columns, "(a, b)", &source, "COMPLEX_KEY_DIRECT()").unwrap();
    let keys: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![-1, 2])), strings(&["x\ty", "z"])];
    let answer = dictionary.get(&[0, 1], &keys).unwrap();
    assert_eq!((values(&answer.columns[0]), values(&answer.columns[1])), (vec![2, 2], vec![8, 4]));
    let keys: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![3])), strings(&["z"])];
    assert_eq!(values(&dictionary.get(&[0], &keys).unwrap().columns[0]), [1]);
}

#[test]
fn a_process_that_keeps_silent_is_killed_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let command =
        format!("sleep 1000 & echo $! > {0}; echo $$ >> {0}; head -n 1; sleep 1000", pids.display());
    let source = format!("COMMAND '{command}' FORMAT TSV COMMAND_READ_TIMEOUT 2000");
    let noted = || std::fs::read_to_string(&pids).unwrap_or_default();
    // It may be killed before it has written both.
    until("both are started", || {
        let dictionary =
            try_open(folder.path(), "id UInt64", "id", &source, "CACHE(SIZE_IN_CELLS 8)").unwrap();
        let started = Instant::now();
        let error = dictionary.has(&u64s([1, 2])).unwrap_err();
        assert!(error.message().contains("Pipe read timeout exceeded 2000 milliseconds"), "{error}");
        assert!(
            error.message().contains("TIMEOUT_EXCEEDED") && started.elapsed() < Duration::from_secs(60),
            "{error}"
        );
        assert_eq!(dictionary.status().element_count, 0, "the first row is not kept");
        noted().lines().count() == 2
    });
    noted().lines().for_each(await_death);
}

#[test]
fn what_a_program_leaves_behind_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let command = format!("sleep 1000 >/dev/null 2>&1 & echo $! > {}; exit 4", pid.display());
    let dictionary = open(&format!("COMMAND '{command}' FORMAT TSV"), "DIRECT()");
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.message().contains("exited with status 4"), "{error}");
    await_death(std::fs::read_to_string(&pid).unwrap().trim());
}

/// Killed: gone, or a zombie that its new parent has not buried.
fn await_death(pid: &str) {
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    until("it is killed", || state().is_empty() || state().contains(") Z "));
}

#[test]
fn a_process_that_ends_or_says_too_much_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |code: &str, keys: &[u64], words: &str| {
        let command = program(folder.path(), "p", code);
        let dictionary = open(&format!("COMMAND '{command}' FORMAT TSV"), "CACHE(SIZE_IN_CELLS 8)");
        let error = dictionary.get(&[0], &u64s(keys.to_vec())).unwrap_err();
        assert!(error.message().contains(words), "{error}");
        assert_eq!(dictionary.status().element_count, 0);
    };
    let dies = "line = sys.stdin.readline()\nprint(line.strip() + '\\t5', flush=True)\nprint('no luck', file=sys.stderr)\nsys.exit(3)";
    fails(dies, &[1, 2], "exited with status 3 before it had answered all keys: no luck");
    let chatty = lines("sys.stdout.write(f'{key}\\t1\\n9\\t9\\n')");
    fails(&chatty, &[1], "more rows than the 1 keys it was sent");
    // As many rows as keys, but the row of the other key comes later.
    let twice =
        "key = sys.stdin.readline().strip()\nprint(f'{key}\\t5\\n{key}\\t6', flush=True)\ntime.sleep(1000)";
    fails(twice, &[1, 2], "answered a key twice");
    // Rows of a key that was not asked for stand in for missing ones.
    let filler = program(folder.path(), "f", &lines("print(key if key == '1' else '0', 5, sep=chr(9))"));
    let dictionary = open(&format!("COMMAND '{filler}' FORMAT TSV"), "DIRECT()");
    assert_eq!(found(&dictionary.has(&u64s([1, 2, 3])).unwrap()), [true, false, false]);
    fails(&lines("print('x')"), &[1], "TabSeparated row 1: ");
    // It ends between two requests, or writes unrequested output later: the next request gets another process.
    let once = "line = sys.stdin.readline()\nprint(line.strip(), os.getpid(), sep='\\t', flush=True)\n";
    let (may_speak, has_spoken) = (folder.path().join("may_speak"), folder.path().join("has_spoken"));
    let speaks = format!(
        "while not os.path.exists('{}'): time.sleep(0.01)\nprint('9\\t9', flush=True)\nopen('{}', 'w')\ntime.sleep(1000)",
        may_speak.display(),
        has_spoken.display()
    );
    for then in ["", &speaks] {
        let command = program(folder.path(), "q", &format!("{once}{then}"));
        let dictionary = open(
            &format!("COMMAND '{command}' FORMAT TSV POOL_SIZE 1 COMMAND_TERMINATION_TIMEOUT 1"),
            "DIRECT()",
        );
        let pid = |key| values(&dictionary.get(&[0], &u64s([key])).unwrap().columns[0])[0];
        let first = pid(1);
        if then.is_empty() {
            await_death(&first.to_string());
        } else {
            std::fs::write(&may_speak, "").unwrap();
            until("it speaks", || has_spoken.exists());
            // The next process is to say nothing but its answer.
            std::fs::remove_file(&may_speak).unwrap();
        }
        assert_ne!(pid(2), first);
    }
}

#[test]
fn requests_wait_for_a_process_of_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let command = program(folder.path(), "p", &lines("time.sleep(1); print(key, os.getpid(), sep=chr(9))"));
    let run = |size: u32, timeout: u32| {
        let source =
            format!("COMMAND '{command}' FORMAT TSV POOL_SIZE {size} MAX_COMMAND_EXECUTION_TIME {timeout}");
        let dictionary = open(&source, "CACHE(SIZE_IN_CELLS 100 MAX_THREADS_FOR_UPDATES 6)");
        std::thread::scope(|scope| {
            let ask = |key| values(&dictionary.get(&[0], &u64s([key]))?.columns[0]).pop().map_or(Ok(0), Ok);
            let asked: Vec<_> =
                (1..=6).map(|key| scope.spawn(move || -> Result<u64, DictError> { ask(key) })).collect();
            asked.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        })
    };
    let mut pids: Vec<u64> = run(2, 60).into_iter().map(|pid| pid.unwrap()).collect();
    pids.sort_unstable();
    pids.dedup();
    assert!(pids.len() <= 2, "{pids:?}");
    let errors: Vec<String> = run(1, 3).into_iter().filter_map(|r| r.err()).map(|e| e.to_string()).collect();
    // Six requests of a second each, one process, three seconds. Who asks behind a failure is told when to ask again.
    let failed = |e: &&String| e.contains("Could not get process from pool");
    let (failures, others): (Vec<&String>, Vec<&String>) = errors.iter().partition(failed);
    assert!(!failures.is_empty(), "{others:?}");
    assert!(others.iter().all(|e| e.contains("nearest update is scheduled")), "{others:?}");
}

#[test]
fn programs_need_permission_and_cannot_be_read_whole() {
    let source = "COMMAND 'cat' FORMAT TSV";
    let dictionary = open(source, "DIRECT()");
    assert_eq!(all_rows(&dictionary).err().unwrap().code(), 1);
    let sql = format!(
        "CREATE DICTIONARY e (id UInt64) PRIMARY KEY id SOURCE(EXECUTABLE_POOL({source})) LAYOUT(DIRECT)"
    );
    let refused = Dictionary::open(definition(&sql), &Environment::new("/")).err().unwrap();
    assert_eq!(refused.code(), 482);
    assert!(refused.message().contains("executable pool dictionary source"), "{refused}");
}
