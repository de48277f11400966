//! The commands of the Agent Control Protocol: the whole control API, by name.
//!
//! Parameters, results and addresses belong to the typed catalogue of `palyra-client`.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// What a control client may ask for. Reading also accepts the names without dots, such as `SessionNew`.
    pub enum AcpCommand("acp_command") {
        /// Start a session.
        SessionNew = "session.new",
        /// Find the session of a key, or start it.
        SessionResolve = "session.resolve",
        /// List sessions.
        SessionList = "session.list",
        /// Read a session with its history.
        SessionLoad = "session.load",
        /// Go on with a session: what is at work, queued and asked in it.
        SessionResume = "session.resume",
        /// Give a session another title.
        SessionRename = "session.rename",
        /// Put a session away, or take it out again.
        SessionArchive = "session.archive",
        /// Start a session from a point in another.
        SessionFork = "session.fork",
        /// Write a session down as one document.
        SessionExport = "session.export",
        /// Send a session's events again.
        SessionReplay = "session.replay",
        /// Say how a session came to be as it is.
        SessionExplain = "session.explain",
        /// Change how untrusted results are treated.
        SessionModeSet = "session.mode.set",
        /// Change a session's settings.
        SessionConfigSet = "session.config.set",
        /// Show what compaction would keep.
        SessionCompactPreview = "session.compact.preview",
        /// Compact the history.
        SessionCompactApply = "session.compact.apply",
        /// Take the newest compaction back.
        SessionCompactRevert = "session.compact.revert",
        /// Find what was said before.
        SessionRecall = "session.recall",
        /// Write to a session: begins, steers, interrupts or queues.
        SessionInput = "session.input",
        /// List what waits in a session.
        SessionQueue = "session.queue",
        /// Take back something that waits.
        SessionInputWithdraw = "session.input.withdraw",
        /// Start a run.
        RunCreate = "run.create",
        /// List runs.
        RunList = "run.list",
        /// Read one run.
        RunGet = "run.get",
        /// Send a run's events.
        RunTape = "run.tape",
        /// Stop a run.
        RunAbort = "run.abort",
        /// Hold a run.
        RunPause = "run.pause",
        /// Let a held run go on.
        RunResume = "run.resume",
        /// Write to a run.
        RunInput = "run.input",
        /// Give a run the results of calls that were handed to its client.
        RunDeliver = "run.deliver",
        /// Change what a run is meant to do.
        RunEnvelopeEdit = "run.envelope.edit",
        /// Take a run's file changes back.
        RunUndo = "run.undo",
        /// Feed a run's tape to the machine again and compare.
        RunReplay = "run.replay",
        /// Show what a run's model saw.
        RunContext = "run.context",
        /// Take the newest summary of a run's context back.
        RunCompactRevert = "run.compact.revert",
        /// Report what models used and cost.
        UsageReport = "usage.report",
        /// Say how it is with the models: which are in use, what rests.
        ModelsStatus = "models.status",
        /// Say which models would be asked, in which order, and why.
        ModelsExplain = "models.explain",
        /// Ask a provider which models it offers.
        ModelsOffered = "models.offered",
        /// Have a model call a tool and answer, with what a run sends first.
        ModelsTest = "models.test",
        /// Give a task to a model without tools and wait for it.
        AuxiliaryRun = "auxiliary.run",
        /// List auxiliary tasks.
        AuxiliaryList = "auxiliary.list",
        /// Read one auxiliary task.
        AuxiliaryGet = "auxiliary.get",
        /// List approvals.
        ApprovalList = "approval.list",
        /// Read one approval.
        ApprovalGet = "approval.get",
        /// Put a question of the client's own to its person.
        ApprovalRequest = "approval.request",
        /// Answer an approval.
        ApprovalDecide = "approval.decide",
        /// List what people agreed to for longer than once.
        PatternList = "pattern.list",
        /// Take such an agreement back.
        PatternRevoke = "pattern.revoke",
        /// List tools.
        ToolList = "tool.list",
        /// List the policies in force.
        PolicyList = "policy.list",
        /// Read the configuration with its sources.
        ConfigGet = "config.get",
        /// Send the newest records.
        JournalTail = "journal.tail",
        /// Send all records from a position on.
        JournalExport = "journal.export",
        /// Check the whole journal.
        JournalVerify = "journal.verify",
        /// Prove that one record is in the journal.
        JournalProve = "journal.prove",
        /// Copy the journal while it is in use.
        JournalBackup = "journal.backup",
        /// Make an API token.
        TokenCreate = "token.create",
        /// List API tokens.
        TokenList = "token.list",
        /// Give an API token a new secret.
        TokenRotate = "token.rotate",
        /// Make an API token worthless.
        TokenRevoke = "token.revoke",
        /// List devices that have a certificate.
        DeviceList = "device.list",
        /// Make the certificates of a device worthless.
        DeviceRevoke = "device.revoke",
        /// Let a principal work below a directory.
        WorkspaceGrant = "workspace.grant",
        /// Take such a directory back.
        WorkspaceRevoke = "workspace.revoke",
        /// List below which directories principals may work.
        WorkspaceList = "workspace.list",
        /// List files whose content is not trusted.
        FileLabels = "file.labels",
        /// Take a person's word for the content of a file.
        FileEndorse = "file.endorse",
        /// List which sessions places outside belong to.
        BindingList = "binding.list",
        /// Read one binding.
        BindingGet = "binding.get",
        /// Create or change a binding.
        BindingSet = "binding.set",
        /// Remove a binding.
        BindingRemove = "binding.remove",
        /// List canvases: pages that agents drew.
        CanvasList = "canvas.list",
        /// Read a canvas with its document.
        CanvasGet = "canvas.get",
        /// Make a link under which a browser shows a canvas.
        CanvasLink = "canvas.link",
        /// Hand what a person did on a canvas to its session.
        CanvasSubmit = "canvas.submit",
        /// Close a canvas and end its links.
        CanvasClose = "canvas.close",
        /// Follow a canvas: the document first, then every patch.
        CanvasWatch = "canvas.watch",
        /// List agents.
        AgentList = "agent.list",
        /// Read one agent.
        AgentGet = "agent.get",
        /// Set an agent up, or change it.
        AgentSet = "agent.set",
        /// Remove an agent and the bindings that name it.
        AgentRemove = "agent.remove",
        /// Put a record of a client's own onto the journal.
        EventAppend = "event.append",
        /// Store a file, so that a task can name it.
        AttachmentAdd = "attachment.add",
        /// Hand a message of a chat channel to the session it belongs to.
        MessageRoute = "message.route",
        /// List installed skills.
        SkillList = "skill.list",
        /// Read one skill: its tools, powers, trust and audit.
        SkillGet = "skill.get",
        /// Hand over a piece of a skill archive.
        SkillUpload = "skill.upload",
        /// Install a skill, or another version of it.
        SkillInstall = "skill.install",
        /// Remove a skill and what it stored.
        SkillRemove = "skill.remove",
        /// Let a skill run.
        SkillEnable = "skill.enable",
        /// Switch a skill off.
        SkillDisable = "skill.disable",
        /// Hold a skill back until a person enables it with a reason.
        SkillQuarantine = "skill.quarantine",
        /// Audit an installed skill again.
        SkillAudit = "skill.audit",
        /// Set what a skill may use: its settings, secrets and grants.
        SkillConfigure = "skill.configure",
        /// Call a skill's tool outside a run.
        SkillCall = "skill.call",
        /// List publishers and their keys.
        PublisherList = "publisher.list",
        /// Trust a publisher's key.
        PublisherTrust = "publisher.trust",
        /// Take trust back from a publisher.
        PublisherUntrust = "publisher.untrust",
        /// Take in what a publisher signed: a change of keys, or a list of revocations.
        PublisherImport = "publisher.import",
        /// Revoke a key for good, whoever uses it.
        PublisherRevokeKey = "publisher.revoke_key",
        /// List which plugins are told of which events.
        HookList = "hook.list",
        /// Bind an event to a plugin.
        HookSet = "hook.set",
        /// Take such a binding back.
        HookRemove = "hook.remove",
        /// Say who the caller is and what it may do.
        PrincipalShow = "principal.show",
        /// Stop the daemon in good order.
        DaemonStop = "daemon.stop",
        /// Take up a broken connection.
        Reconnect = "reconnect",
    }
}

runtime_contract_enum! {
    /// What a command does to the daemon's world, weakest first.
    pub enum CommandEffect("command_effect") {
        /// It only looks.
        Read = "read",
        /// It changes the caller's own work.
        Change = "change",
        /// It concerns the whole daemon: everybody's work, or who may use it.
        Administer = "administer",
    }
}
