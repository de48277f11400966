//! Takes names and debugging sections out of a module or component, on every level.
//!
//! An interpreter's component is mostly code, but several megabytes of it are the names of its functions, and an entry of a skill archive has a limit.

use wasmparser::{Encoding, Parser, Payload};

use crate::BuildError;

/// The ids that a component gives to the sections of nested modules and components.
const NESTED_MODULE: u8 = 1;
const NESTED_COMPONENT: u8 = 4;

/// The same module or component without what only debuggers read.
pub(crate) fn strip(wasm: &[u8]) -> Result<Vec<u8>, BuildError> {
    let mut output: Vec<u8> = Vec::with_capacity(wasm.len());
    let mut above: Vec<(Vec<u8>, u8)> = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.map_err(BuildError::not_a_plugin)?;
        match &payload {
            Payload::Version { encoding, range, .. } => {
                // The nested header is written when the nested bytes are: it says what they are.
                let header =
                    wasm.get(range.clone()).ok_or_else(|| BuildError::not_a_plugin("its header is truncated"))?;
                output.extend_from_slice(header);
                if let Some((_, kind)) = above.last_mut() {
                    *kind = if *encoding == Encoding::Component { NESTED_COMPONENT } else { NESTED_MODULE };
                }
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                above.push((std::mem::take(&mut output), NESTED_MODULE));
                continue;
            }
            Payload::End(_) => {
                if let Some((mut parent, kind)) = above.pop() {
                    append(&mut parent, kind, &output)?;
                    output = parent;
                }
                continue;
            }
            Payload::CustomSection(section) if for_debuggers(section.name()) => continue,
            _ => {}
        }
        if let Some((id, range)) = payload.as_section() {
            let bytes = wasm.get(range).ok_or_else(|| BuildError::not_a_plugin("a section is truncated"))?;
            append(&mut output, id, bytes)?;
        }
    }
    Ok(output)
}

fn for_debuggers(name: &str) -> bool {
    name == "name"
        || name == "component-name"
        || name == "sourceMappingURL"
        || name.starts_with(".debug")
        || name == "external_debug_info"
        || name == "linking"
        || name.starts_with("reloc.")
}

fn append(output: &mut Vec<u8>, id: u8, bytes: &[u8]) -> Result<(), BuildError> {
    let length = u32::try_from(bytes.len()).map_err(|_| BuildError::not_a_plugin("a section is larger than 4 GiB"))?;
    output.push(id);
    let mut rest = length;
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap_or_default();
        rest >>= 7;
        if rest == 0 {
            output.push(low);
            break;
        }
        output.push(low | 0x80);
    }
    output.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_and_everything_else_stays() {
        let text = r#"(component
            (core module $named (func $inner (export "run") (result i32) i32.const 7) (@custom "keep" "me"))
            (core instance $one (instantiate $named))
            (component (core module (func $deeper nop))))"#;
        let bytes = wat::parse_str(text).unwrap();
        let stripped = strip(&bytes).unwrap();
        assert!(stripped.len() < bytes.len());
        wasmparser::Validator::new().validate_all(&stripped).unwrap();
        let contains = |needle: &[u8]| stripped.windows(needle.len()).any(|window| window == needle);
        assert!(!contains(b"inner") && !contains(b"deeper"));
        assert!(contains(b"run") && contains(b"keep"));
        assert_eq!(strip(&stripped).unwrap(), stripped, "there is nothing left to take out");
    }

    #[test]
    fn what_is_no_wasm_is_refused() {
        assert!(strip(b"nonsense").is_err());
        assert!(strip(&wat::parse_str("(module (func nop))").unwrap()[..20]).is_err());
    }
}
