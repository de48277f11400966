//! A module that is compiled, checked and linked: everything that can be done before a call.

use palyra_common::Digest;
use palyra_plugins::{HOOK_EXPORT, TOOL_EXPORT};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, ComponentNamedList, Lift, Lower};
use wasmtime::{InstancePre, component};

use crate::bindings::exports::palyra::plugin::{hook, tool};
use crate::cache::Code;
use crate::core_module::{self, Entry};
use crate::error::PluginError;
use crate::linkers::Linkers;
use crate::scan::{PluginKind, Scan};
use crate::state::CallState;
use crate::text::one_line;

/// A plugin, ready to be called. Cheap to share; each call gets an instance of its own.
pub struct Plugin {
    digest: Digest,
    imports: Vec<String>,
    pub(crate) body: Body,
}

/// What a plugin consists of.
pub(crate) enum Body {
    Component { pre: component::InstancePre<CallState>, tool: Option<ToolExports>, hook: Option<ComponentExportIndex> },
    Module { pre: InstancePre<CallState>, entry: Entry },
}

/// The functions of `palyra:plugin/tool`.
pub(crate) struct ToolExports {
    pub(crate) describe: ComponentExportIndex,
    pub(crate) call: ComponentExportIndex,
}

/// Result of `describe`.
pub(crate) type Described = (Vec<tool::Description>,);
/// Result of `call`.
pub(crate) type Called = (Result<String, tool::Failure>,);
/// Result of `handle`.
pub(crate) type Handled = (Result<hook::Decision, String>,);

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("digest", &self.digest)
            .field("kind", &self.kind())
            .field("imports", &self.imports)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    /// The digest of the module it was made from.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Component or core module.
    #[must_use]
    pub const fn kind(&self) -> PluginKind {
        match self.body {
            Body::Component { .. } => PluginKind::Component,
            Body::Module { .. } => PluginKind::CoreModule,
        }
    }

    /// Whether it has tools.
    #[must_use]
    pub const fn exports_tool(&self) -> bool {
        matches!(self.body, Body::Module { .. } | Body::Component { tool: Some(_), .. })
    }

    /// Whether it has hooks.
    #[must_use]
    pub const fn exports_hook(&self) -> bool {
        matches!(self.body, Body::Component { hook: Some(_), .. })
    }

    /// What it imports, as it names it.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Links compiled code and checks the types of what it exports.
    pub(crate) fn link(digest: Digest, scan: Scan, code: &Code, linkers: &Linkers) -> Result<Self, PluginError> {
        let refused = |error: wasmtime::Error| PluginError::ImportRefused {
            import: scan.imports.join("`, `"),
            reason: one_line(&format!("{error:#}")),
        };
        let body = match code {
            Code::Component(component) => {
                let linker = if scan.uses_wasi_http { &linkers.with_wasi_http } else { &linkers.component };
                let pre = linker.instantiate_pre(component).map_err(refused)?;
                let (tool, hook) = exports(component, &pre)?;
                Body::Component { pre, tool, hook }
            }
            Code::Module(module) => {
                let entry = core_module::entry(module)?;
                Body::Module { pre: linkers.module.instantiate_pre(module).map_err(refused)?, entry }
            }
        };
        Ok(Self { digest, imports: scan.imports, body })
    }
}

type Exports = (Option<ToolExports>, Option<ComponentExportIndex>);

fn exports(component: &Component, pre: &component::InstancePre<CallState>) -> Result<Exports, PluginError> {
    let tool = match component.get_export_index(None, TOOL_EXPORT) {
        None => None,
        Some(interface) => Some(ToolExports {
            describe: function::<(), Described>(component, pre, &interface, (TOOL_EXPORT, "describe"))?,
            call: function::<(&str, &str), Called>(component, pre, &interface, (TOOL_EXPORT, "call"))?,
        }),
    };
    let hook = match component.get_export_index(None, HOOK_EXPORT) {
        None => None,
        Some(interface) => {
            Some(function::<(&hook::Event,), Handled>(component, pre, &interface, (HOOK_EXPORT, "handle"))?)
        }
    };
    if tool.is_none() && hook.is_none() {
        return Err(PluginError::WrongExport {
            export: TOOL_EXPORT.to_owned(),
            reason: format!("nor `{HOOK_EXPORT}`, and a plugin needs at least one of them"),
        });
    }
    Ok((tool, hook))
}

/// One function of an exported interface, if it is there with this type.
fn function<Params, Results>(
    component: &Component,
    pre: &component::InstancePre<CallState>,
    interface: &ComponentExportIndex,
    (interface_name, name): (&str, &str),
) -> Result<ComponentExportIndex, PluginError>
where
    Params: ComponentNamedList + Lower,
    Results: ComponentNamedList + Lift,
{
    let wrong = |reason: String| PluginError::WrongExport { export: format!("{interface_name}#{name}"), reason };
    match component.get_export(Some(interface), name) {
        Some((ComponentItem::ComponentFunc(function), index)) => {
            function
                .typecheck::<Params, Results>(&pre.instance_type())
                .map_err(|error| wrong(one_line(&format!("{error:#}"))))?;
            Ok(index)
        }
        Some(_) => Err(wrong("it is not a function".to_owned())),
        None => Err(wrong("it does not exist".to_owned())),
    }
}
