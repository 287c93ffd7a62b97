//! A memcached server by itself: `serve ADDRESS FOLDER MEMORY_MIB FLASH_MIB [THREADS [ADMISSION]]`. Stops at the end of
//! its standard input.

use granary_memcached::{Options, Server, StoreOptions};
use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, folder, memory, flash, rest @ ..] = &arguments[..] else {
        return Err("serve ADDRESS FOLDER MEMORY_MIB FLASH_MIB [THREADS [ADMISSION]]".into());
    };
    let mut store = StoreOptions::new(folder, memory.parse::<u64>()? << 20, flash.parse::<u64>()? << 20);
    if let Some(admission) = rest.get(1) {
        store.admission = admission.parse()?;
    }
    let mut options = Options::new(address.parse()?, store);
    options.threads = rest.first().map(|threads| threads.parse()).transpose()?;
    let server = Server::start(&options)?;
    println!("listens on {}", server.address());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(server.stop()?)
}
