//! The study of compression without the rest of Granary: `compression VALUES SCRATCH RIVALS OUT [ROUNDS OPERATIONS]`.

use granary_lab::compression::Study;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [values, scratch, rivals, out] = [0, 1, 2, 3].map(|i| PathBuf::from(&arguments[i]));
    let (rounds, operations) = (arguments[4].parse()?, arguments[5].parse()?);
    let study = Study { values: &values, scratch: &scratch, rivals: &rivals, rounds, operations };
    let findings = study.run(|line| println!("{line}"))?;
    std::fs::write(out.join("compression.md"), findings.text(&arguments[6..], false))?;
    std::fs::write(out.join("compression.csv"), findings.csv())?;
    Ok(findings.plot(Path::new(&out.join("compression.svg")))?)
}
