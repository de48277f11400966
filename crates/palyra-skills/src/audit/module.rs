//! What a module says about itself: its kind, its imports and exports, the memory it wants.
//!
//! Read from the sections of the module, without running or compiling anything. Only the outermost imports and exports count: what nested modules of a component
//! import is given to them by the component.

use wasmparser::{ComponentExternalKind, ComponentTypeRef, ExternalKind, Parser, Payload, Validator};

/// What kind of module it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModuleKind {
    /// A component, with typed imports and exports.
    Component,
    /// A core module with the simple `run` export.
    Core,
}

/// What a module says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleFacts {
    pub(crate) kind: ModuleKind,
    /// Whole interfaces of a component; the modules that a core module imports from.
    pub(crate) imports: Vec<String>,
    /// Imports of a component that are not whole interfaces.
    pub(crate) odd_imports: Vec<String>,
    /// Interfaces of a component; functions of a core module.
    pub(crate) exports: Vec<String>,
    /// Bytes of all memories together when it begins.
    pub(crate) initial_memory: u64,
}

/// Validates a module and reads it; the error says what is wrong.
pub(crate) fn read(wasm: &[u8]) -> Result<ModuleFacts, String> {
    let kind = if Parser::is_component(wasm) {
        ModuleKind::Component
    } else if Parser::is_core_wasm(wasm) {
        ModuleKind::Core
    } else {
        return Err("it is not WebAssembly".to_owned());
    };
    let broken = |error: wasmparser::BinaryReaderError| crate::error::shown(error.message());
    Validator::new().validate_all(wasm).map_err(broken)?;
    let mut facts =
        ModuleFacts { kind, imports: Vec::new(), odd_imports: Vec::new(), exports: Vec::new(), initial_memory: 0 };
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(broken)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory = memory.map_err(broken)?;
                    let page = 1_u64.checked_shl(memory.page_size_log2.unwrap_or(16)).unwrap_or(u64::MAX);
                    facts.initial_memory = facts.initial_memory.saturating_add(memory.initial.saturating_mul(page));
                }
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let import = import.map_err(broken)?;
                    let whole = matches!(import.ty, ComponentTypeRef::Instance(_));
                    let list = if whole { &mut facts.imports } else { &mut facts.odd_imports };
                    list.push(import.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let export = export.map_err(broken)?;
                    if export.kind == ComponentExternalKind::Instance {
                        facts.exports.push(export.name.name.to_owned());
                    } else {
                        facts.exports.push(format!("{} ({})", export.name.name, export.kind.desc()));
                    }
                }
            }
            Payload::ImportSection(section) if depth == 0 && kind == ModuleKind::Core => {
                for import in section.into_imports() {
                    facts.imports.push(import.map_err(broken)?.module.to_owned());
                }
            }
            Payload::ExportSection(section) if depth == 0 && kind == ModuleKind::Core => {
                for export in section {
                    let export = export.map_err(broken)?;
                    if export.kind == ExternalKind::Func {
                        facts.exports.push(export.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    facts.imports.sort();
    facts.imports.dedup();
    Ok(facts)
}
