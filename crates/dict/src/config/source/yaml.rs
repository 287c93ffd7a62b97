//! YAMLREGEXPTREE(..).

use super::{Kind, no_expressions};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// YAMLREGEXPTREE(PATH '..'): a YAML file of regular expressions, each with what lies within its matches.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlConfig {
    /// PATH, as written; `Environment::resolve` says where it leads.
    pub path: String,
}

const PARAMETERS: Parameters = Parameters { allowed: &["PATH"], idle: &[], refused: &[] };

impl YamlConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<YamlConfig, DictError> {
        let settings = Settings::of("SOURCE", "YAMLREGEXPTREE", nodes, &PARAMETERS)?;
        Ok(YamlConfig { path: settings.required("PATH")?.to_string() })
    }
}

impl Kind for YamlConfig {
    fn name(&self) -> &'static str {
        "YAMLREGEXPTREE"
    }

    fn nodes(&self, _hidden: Option<&str>) -> Vec<Node> {
        vec![Node::text("PATH", &self.path)]
    }

    fn describe(&self) -> String {
        format!("YAMLRegExpTree: {}", self.path)
    }

    fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        no_expressions("yamlregexptree", structure)
    }
}
