//! x
use clap::Args;
/// x
#[derive(Args)]
pub struct Arguments {}
/// x
pub fn run(_: &Arguments) -> crate::failure::Result<()> {
    Ok(())
}
