//! What each deployment profile means: posture, binding, connectivity, workers, isolation and the defaults it changes.
//!
//! A profile is data. It never loosens a rule: a public bind passes the same check in every profile, and a profile
//! only says what is expected of the host and which defaults suit it.

use serde::Serialize;

use crate::config::{ConfigValue, find_key};
use crate::{ContractEnum as _, DeploymentProfile, SandboxTier, runtime_contract_enum};

runtime_contract_enum! {
    /// Whom an installation trusts by default.
    pub enum SecurityPosture("security_posture") {
        /// The person at the machine is operator and user; they are known by the socket's peer or a private token file.
        SingleUser = "single_user",
        /// Operators come from elsewhere and each has a credential of their own.
        Hardened = "hardened",
        /// As hardened, and every worker proves who it is.
        ZeroTrustFleet = "zero_trust_fleet",
    }
}

runtime_contract_enum! {
    /// Which addresses an installation is meant to listen on.
    pub enum BindingBehaviour("binding_behaviour") {
        /// Loopback only.
        LoopbackOnly = "loopback_only",
        /// Loopback, and a public address once TLS, authentication and both acknowledgements are there.
        PublicWhenAcknowledged = "public_when_acknowledged",
    }
}

runtime_contract_enum! {
    /// A way in which an installation can be reached or reaches its workers.
    pub enum ConnectivityOption("connectivity_option") {
        /// The local socket.
        UnixSocket = "unix_socket",
        /// HTTP, WebSocket and the console.
        Http = "http",
        /// gRPC for clients.
        Grpc = "grpc",
        /// gRPC with mutual TLS for nodes and workers.
        NodeGrpcMtls = "node_grpc_mtls",
        /// QUIC for nodes and workers.
        NodeQuic = "node_quic",
        /// The message bus of a fleet.
        Nats = "nats",
    }
}

runtime_contract_enum! {
    /// Where tools may be executed.
    pub enum WorkerSupport("worker_support") {
        /// On the daemon's own machine.
        None = "none",
        /// Also on a fleet of networked workers.
        Fleet = "fleet",
    }
}

runtime_contract_enum! {
    /// What happens when the host cannot give the isolation that a profile asks for.
    pub enum MissingIsolation("missing_isolation") {
        /// The weaker isolation is used and reported.
        Report = "report",
        /// The call is refused.
        Refuse = "refuse",
    }
}

runtime_contract_enum! {
    /// How an installation of a profile is usually set up.
    pub enum DeploymentRecipe("deployment_recipe") {
        /// A binary started on demand.
        Binary = "binary",
        /// A system service.
        Systemd = "systemd",
        /// A container.
        Docker = "docker",
        /// Several containers together.
        Compose = "compose",
    }
}

/// Isolation that a profile asks for processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SandboxRequirement {
    /// The weakest tier under which a process may run.
    pub minimum_process_tier: SandboxTier,
    /// What happens when the host cannot give it.
    pub when_missing: MissingIsolation,
}

/// Everything a profile says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DeploymentProfileSpec {
    /// Which profile.
    pub id: DeploymentProfile,
    /// Its name for people.
    pub label: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Whom it trusts by default.
    pub security_posture: SecurityPosture,
    /// Where it listens.
    pub binding: BindingBehaviour,
    /// How it can be reached.
    pub connectivity: &'static [ConnectivityOption],
    /// Where tools may be executed.
    pub workers: WorkerSupport,
    /// The isolation it asks for.
    pub sandbox: SandboxRequirement,
    /// How it is usually set up.
    pub recipes: &'static [DeploymentRecipe],
    /// Configuration keys whose default it changes, with the value as text.
    pub config_defaults: &'static [(&'static str, &'static str)],
}

use ConnectivityOption::{Grpc, Http, Nats, NodeGrpcMtls, NodeQuic, UnixSocket};
use DeploymentRecipe::{Binary, Compose, Docker, Systemd};

const LOCAL: DeploymentProfileSpec = DeploymentProfileSpec {
    id: DeploymentProfile::Local,
    label: "Local workstation",
    description: "One person on their own machine: one binary, one state directory, nothing reachable from outside.",
    security_posture: SecurityPosture::SingleUser,
    binding: BindingBehaviour::LoopbackOnly,
    connectivity: &[UnixSocket, Http, Grpc],
    workers: WorkerSupport::None,
    sandbox: SandboxRequirement { minimum_process_tier: SandboxTier::B, when_missing: MissingIsolation::Report },
    recipes: &[Binary],
    config_defaults: &[],
};

const SINGLE_VM: DeploymentProfileSpec = DeploymentProfileSpec {
    id: DeploymentProfile::SingleVm,
    label: "Single server",
    description: "One remote server that runs unattended and is operated from elsewhere.",
    security_posture: SecurityPosture::Hardened,
    binding: BindingBehaviour::PublicWhenAcknowledged,
    connectivity: &[UnixSocket, Http, Grpc, NodeGrpcMtls, NodeQuic],
    workers: WorkerSupport::None,
    sandbox: SandboxRequirement { minimum_process_tier: SandboxTier::C, when_missing: MissingIsolation::Refuse },
    recipes: &[Systemd, Docker],
    // Logs of a server are read by programs.
    config_defaults: &[("log.format", "json")],
};

const WORKER_ENABLED: DeploymentProfileSpec = DeploymentProfileSpec {
    id: DeploymentProfile::WorkerEnabled,
    label: "Server with workers",
    description: "A server whose tools are executed by a fleet of networked workers.",
    security_posture: SecurityPosture::ZeroTrustFleet,
    binding: BindingBehaviour::PublicWhenAcknowledged,
    connectivity: &[UnixSocket, Http, Grpc, NodeGrpcMtls, NodeQuic, Nats],
    workers: WorkerSupport::Fleet,
    sandbox: SandboxRequirement { minimum_process_tier: SandboxTier::C, when_missing: MissingIsolation::Refuse },
    recipes: &[Systemd, Docker, Compose],
    // Workers do the heavy part, so the daemon can hold more runs and calls at once.
    config_defaults: &[("log.format", "json"), ("run.max_concurrent", "256"), ("tool.max_parallel", "16")],
};

impl DeploymentProfile {
    /// Everything this profile says.
    #[must_use]
    pub const fn spec(self) -> &'static DeploymentProfileSpec {
        match self {
            Self::Local => &LOCAL,
            Self::SingleVm => &SINGLE_VM,
            Self::WorkerEnabled => &WORKER_ENABLED,
        }
    }
}

impl DeploymentProfileSpec {
    /// Other names under which the profile is known.
    #[must_use]
    pub fn aliases(&self) -> &'static [&'static str] {
        self.id.aliases()
    }

    /// The default this profile gives a key, if it changes it.
    #[must_use]
    pub fn config_default(&self, key: &str) -> Option<ConfigValue> {
        let (_, text) = self.config_defaults.iter().find(|(name, _)| *name == key)?;
        find_key(key)?.value_type.check_text(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_default_is_a_valid_value_and_a_change() {
        for profile in DeploymentProfile::ALL {
            let spec = profile.spec();
            assert_eq!(spec.id, *profile);
            for (key, _) in spec.config_defaults {
                let value = spec.config_default(key).unwrap_or_else(|| panic!("{profile}: `{key}`"));
                assert_ne!(value, find_key(key).unwrap().default(), "{profile}: `{key}`");
                assert_ne!(*key, "deployment.profile");
            }
        }
    }

    #[test]
    fn only_local_stays_on_loopback_and_tolerates_weaker_isolation() {
        for profile in DeploymentProfile::ALL {
            let (spec, is_local) = (profile.spec(), *profile == DeploymentProfile::Local);
            assert_eq!(spec.binding == BindingBehaviour::LoopbackOnly, is_local);
            assert_eq!(spec.sandbox.when_missing == MissingIsolation::Report, is_local);
            assert_eq!(spec.workers == WorkerSupport::Fleet, *profile == DeploymentProfile::WorkerEnabled);
        }
    }
}
