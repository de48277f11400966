//! The kinds of installation. What each of them means is in `deployment_profiles`.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// How this installation is deployed.
    pub enum DeploymentProfile("deployment_profile") {
        /// One person's workstation.
        Local = "local" | "local_desktop",
        /// One remote server.
        SingleVm = "single-vm" | "remote" | "remote_vps" | "vps",
        /// A daemon with a fleet of workers.
        WorkerEnabled = "worker-enabled" | "worker" | "workers",
    }
}
