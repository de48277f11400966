//! Reading a module before anything is compiled: is it valid, what does it import, is it within bounds.
//!
//! Compilers spend time on what is in a module, so the bounds here stop modules that are small on disk and endless to compile. Imports are read from the
//! module's own import section; whatever is not offered is refused by name.

use palyra_plugins::classify_import;
use wasmparser::{ComponentTypeRef, Encoding, Parser, Payload, Validator, WasmFeatures};

use crate::error::PluginError;

/// Functions in all modules of a plugin; a Python interpreter has some twenty thousand.
const MAX_FUNCTIONS: usize = 200_000;
/// Bytes of one function: compiling takes more than linear time in the size of a function.
const MAX_FUNCTION_BYTES: usize = 1 << 20;
/// Local variables of one function, for the same reason.
const MAX_LOCALS: u32 = 20_000;
/// Core modules and components nested in a component.
const MAX_NESTED: usize = 1000;

/// What kind of module a plugin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginKind {
    /// A component, with typed imports and exports.
    Component,
    /// A core module with the simple `run` export.
    CoreModule,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) kind: PluginKind,
    /// Interfaces of a component, modules and fields of a core module, as they are named.
    pub(crate) imports: Vec<String>,
    /// Whether requests through `wasi:http` have to be linked.
    pub(crate) uses_wasi_http: bool,
}

/// Whether all of a module is valid. What was compiled before was valid then, so this is left out for it.
pub(crate) fn validate(wasm: &[u8], features: WasmFeatures) -> Result<(), PluginError> {
    let valid = Validator::new_with_features(features).validate_all(wasm);
    valid.map(|_| ()).map_err(|error| malformed(&error))
}

/// Reads a module; refuses what is not offered or out of bounds.
pub(crate) fn scan(wasm: &[u8]) -> Result<Scan, PluginError> {
    let kind = if Parser::is_component(wasm) {
        PluginKind::Component
    } else if Parser::is_core_wasm(wasm) {
        PluginKind::CoreModule
    } else {
        return Err(PluginError::Malformed("it is not WebAssembly".to_owned()));
    };
    let imports = read(wasm, kind)?;
    let mut uses_wasi_http = false;
    for import in &imports {
        match kind {
            PluginKind::Component => {
                let offered = classify_import(import).map_err(|foreign| PluginError::ImportRefused {
                    import: foreign.0,
                    reason: "it is not an interface of the host".to_owned(),
                })?;
                uses_wasi_http |= offered.is_none();
            }
            PluginKind::CoreModule => {
                if !import.starts_with(crate::core_module::IMPORT_PREFIX) {
                    return Err(PluginError::ImportRefused {
                        import: import.clone(),
                        reason: "a core module may import only grant counters and handles".to_owned(),
                    });
                }
            }
        }
    }
    Ok(Scan { kind, imports, uses_wasi_http })
}

/// Walks all sections, nested ones too, and gives the outermost imports.
fn read(wasm: &[u8], kind: PluginKind) -> Result<Vec<String>, PluginError> {
    let (mut depth, mut nested, mut functions) = (0_usize, 0_usize, 0_usize);
    let mut imports = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(|error| malformed(&error))? {
            Payload::Version { encoding, .. } => {
                let outermost = if kind == PluginKind::Component { Encoding::Component } else { Encoding::Module };
                if depth == 0 && encoding != outermost {
                    return Err(PluginError::Malformed("its header is inconsistent".to_owned()));
                }
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                depth += 1;
                nested += 1;
                if nested > MAX_NESTED {
                    return Err(PluginError::TooLarge(format!("it nests more than {MAX_NESTED} modules")));
                }
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let import = import.map_err(|error| malformed(&error))?;
                    if !matches!(import.ty, ComponentTypeRef::Instance(_)) {
                        return Err(PluginError::ImportRefused {
                            import: import.name.name.to_owned(),
                            reason: "only whole interfaces may be imported".to_owned(),
                        });
                    }
                    imports.push(import.name.name.to_owned());
                }
            }
            Payload::ImportSection(section) if depth == 0 && kind == PluginKind::CoreModule => {
                for import in section.into_imports() {
                    let import = import.map_err(|error| malformed(&error))?;
                    imports.push(format!("{}/{}", import.module, import.name));
                }
            }
            Payload::CodeSectionStart { count, .. } => {
                functions = functions.saturating_add(count as usize);
                if functions > MAX_FUNCTIONS {
                    return Err(PluginError::TooLarge(format!("it has more than {MAX_FUNCTIONS} functions")));
                }
            }
            Payload::CodeSectionEntry(body) => {
                let size = body.range().len();
                if size > MAX_FUNCTION_BYTES {
                    return Err(PluginError::TooLarge(format!(
                        "a function has {size} bytes; the limit is {MAX_FUNCTION_BYTES}"
                    )));
                }
                let mut locals = 0_u32;
                for local in body.get_locals_reader().map_err(|error| malformed(&error))? {
                    let (count, _) = local.map_err(|error| malformed(&error))?;
                    locals = locals.saturating_add(count);
                }
                if locals > MAX_LOCALS {
                    return Err(PluginError::TooLarge(format!(
                        "a function has {locals} local variables; the limit is {MAX_LOCALS}"
                    )));
                }
            }
            _ => {}
        }
    }
    Ok(imports)
}

fn malformed(error: &wasmparser::BinaryReaderError) -> PluginError {
    PluginError::Malformed(crate::text::one_line(&error.to_string()))
}
