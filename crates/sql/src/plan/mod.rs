//! What is changed in DataFusion's plans, where types are known.

mod declared;
mod marks;
mod optimise;
mod outer_join;
mod settings;

pub use declared::DeclaredTypes;
pub use marks::MarkedRows;
pub use optimise::optimise;
pub use outer_join::OuterJoinDefaults;
pub use settings::QuerySettings;
