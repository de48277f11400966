//! Templates of skills, guest compilers, and components out of what they make.
//!
//! [`new_skill`] writes a folder that builds; [`build_skill`] turns such a folder into `modules/<skill_id>.wasm` with an SBOM and a provenance file
//! beside it; [`GuestTools`] says which compilers are there and how the missing ones are installed; [`SkillCases`] are the cases of `tests/*.json`.
//! Nothing that was built is run here, and nothing is signed: that is for the runtime and for `palyra-skills`.
//!
//! What comes out imports `palyra:host` and nothing else. Compilers that want WASI get an adapter that refuses everything, or have it switched off.

mod cache;
mod cases;
mod compile;
mod component;
mod descriptions;
mod error;
mod inspect;
mod language;
mod manifest;
mod process;
mod provenance;
mod sbom;
mod sdk;
mod skill;
mod source;
mod strip;
mod templates;
mod toolchain;
mod world;

pub use cases::{CannedHttp, Case, CaseFailure, Expectation, HookCase, Sent, SkillCases};
pub use error::BuildError;
pub use inspect::{ModuleKind, ModuleShape, inspect_module};
pub use language::Language;
pub use manifest::{SkillSummary, ToolSummary};
pub use provenance::{ModuleDigest, Provenance};
pub use skill::{BuildOptions, BuiltModule, BuiltSkill, Origin, Reuse, build_skill};
pub use templates::{NewSkill, SkillKind, new_skill};
pub use toolchain::{GuestTools, MissingToolchain, Toolchain};
