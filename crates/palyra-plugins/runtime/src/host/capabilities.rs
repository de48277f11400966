//! `palyra:host/capabilities`: what this call was granted.

use wasmtime::Result;

use super::wit::capabilities::Host;
use crate::shared::Kind;
use crate::state::CallState;
use crate::usage::HostCall;

impl CallState {
    /// How many grants of a kind there are.
    pub(crate) fn capability_count(&self, kind: Kind) -> Result<u32> {
        self.shared.count(HostCall::Capabilities)?;
        Ok(u32::try_from(self.shared.granted(kind)).unwrap_or(u32::MAX))
    }

    /// The handle of a grant.
    pub(crate) fn capability_handle(&self, kind: Kind, index: u32) -> Result<Option<u64>> {
        self.shared.count(HostCall::Capabilities)?;
        Ok(self.shared.handle(kind, index))
    }
}

impl Host for CallState {
    fn http_count(&mut self) -> Result<u32> {
        self.capability_count(Kind::Http)
    }

    fn http_handle(&mut self, index: u32) -> Result<Option<u64>> {
        self.capability_handle(Kind::Http, index)
    }

    fn http_rule(&mut self, grant: u64) -> Result<Option<String>> {
        self.shared.count(HostCall::Capabilities)?;
        Ok(self.shared.http(grant).map(|grant| grant.rule.clone()))
    }

    fn secret_count(&mut self) -> Result<u32> {
        self.capability_count(Kind::Secret)
    }

    fn secret_handle(&mut self, index: u32) -> Result<Option<u64>> {
        self.capability_handle(Kind::Secret, index)
    }

    fn secret_name(&mut self, grant: u64) -> Result<Option<String>> {
        self.shared.count(HostCall::Capabilities)?;
        Ok(self.shared.secret(grant).map(|grant| grant.name.clone()))
    }

    fn storage_count(&mut self) -> Result<u32> {
        self.capability_count(Kind::Storage)
    }

    fn storage_handle(&mut self, index: u32) -> Result<Option<u64>> {
        self.capability_handle(Kind::Storage, index)
    }

    fn storage_name(&mut self, grant: u64) -> Result<Option<String>> {
        self.shared.count(HostCall::Capabilities)?;
        Ok(self.shared.storage(grant).map(|grant| grant.name.clone()))
    }

    fn channel_count(&mut self) -> Result<u32> {
        self.capability_count(Kind::Channel)
    }

    fn channel_handle(&mut self, index: u32) -> Result<Option<u64>> {
        self.capability_handle(Kind::Channel, index)
    }

    fn channel_name(&mut self, grant: u64) -> Result<Option<String>> {
        self.shared.count(HostCall::Capabilities)?;
        Ok(self.shared.channel(grant).map(|grant| grant.name.clone()))
    }
}
