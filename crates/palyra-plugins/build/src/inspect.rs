//! What a module imports and exports, read from its own sections.

use wasmparser::{Encoding, Parser, Payload, Validator};

use crate::BuildError;

/// What kind of WebAssembly it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleKind {
    /// A component.
    Component,
    /// A core module with the plain `run` export.
    CoreModule,
}

/// The outside of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleShape {
    /// What kind it is.
    pub kind: ModuleKind,
    /// The interfaces of a component, or the modules of a core module's imports, sorted.
    pub imports: Vec<String>,
    /// The names of exports, sorted.
    pub exports: Vec<String>,
}

/// Validates a module and reads what it imports and exports.
pub fn inspect_module(wasm: &[u8]) -> Result<ModuleShape, BuildError> {
    Validator::new().validate_all(wasm).map_err(BuildError::not_a_plugin)?;
    let mut kind = ModuleKind::CoreModule;
    let mut imports = Vec::new();
    let mut exports = Vec::new();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.map_err(BuildError::not_a_plugin)?;
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth = depth.saturating_add(1),
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            Payload::Version { encoding: Encoding::Component, .. } => kind = ModuleKind::Component,
            Payload::ComponentImportSection(section) => {
                for import in section {
                    imports.push(import.map_err(BuildError::not_a_plugin)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    exports.push(export.map_err(BuildError::not_a_plugin)?.name.name.to_owned());
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    imports.push(import.map_err(BuildError::not_a_plugin)?.module.to_owned());
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    exports.push(export.map_err(BuildError::not_a_plugin)?.name.to_owned());
                }
            }
            _ => {}
        }
    }
    imports.sort();
    imports.dedup();
    exports.sort();
    Ok(ModuleShape { kind, imports, exports })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outside_is_listed() {
        let text = r#"(component
            (import "palyra:host/log@1.0.0" (instance (export "write" (func (param "x" string)))))
            (core module $inner (import "env" "hidden" (func)) (func (export "inside"))))"#;
        let shape = inspect_module(&wat::parse_str(text).unwrap()).unwrap();
        assert_eq!(shape.kind, ModuleKind::Component);
        assert_eq!(shape.imports, ["palyra:host/log@1.0.0"]);
        assert!(shape.exports.is_empty());
    }

    #[test]
    fn a_core_module_lists_where_it_imports_from() {
        let text = r#"(module (import "env" "a" (func)) (import "env" "b" (func)) (func (export "run") (result i32) i32.const 0))"#;
        let shape = inspect_module(&wat::parse_str(text).unwrap()).unwrap();
        assert_eq!(shape.kind, ModuleKind::CoreModule);
        assert_eq!(shape.imports, ["env"]);
        assert_eq!(shape.exports, ["run"]);
    }

    #[test]
    fn an_invalid_module_is_refused() {
        assert!(inspect_module(b"\0asm\x01\0\0\0\x01").is_err());
    }
}
