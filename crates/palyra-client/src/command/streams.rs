//! Commands that are answered with any number of documents.

use palyra_common::{
    AcpCommand, CanvasId, CommandEffect, RunId, RunStreamEvent, SessionId, StableErrorEnvelope, TokenScope,
};
use serde::Serialize;
use serde_json::Value;

use super::about::NoParams;
use super::catalogue::{catalogue, params_type, parse_body, parse_query, parse_value, target_field, target_of};
use super::{CommandSpec, HttpMethod};
use crate::api::{
    CanvasChangeView, ExportJournalParams, JournalRecordView, RunTapeParams, TailJournalParams, VerifyLine,
    WatchCanvasParams, paths,
};

catalogue! {
    /// A command that is answered with a stream.
    commands StreamCommand;
    /// One document of such a stream.
    outcomes StreamDocument;
    table STREAM_COMMANDS;

    RunTape [RunId] RunTapeParams => RunStreamEvent, Read, RunsRead, Get paths::RUN_TAPE;
    SessionReplay [SessionId] NoParams => RunStreamEvent, Read, SessionsRead, Get paths::SESSION_REPLAY;
    CanvasWatch [CanvasId] WatchCanvasParams => CanvasChangeView, Read, SessionsRead, Get paths::CANVAS_WATCH;
    JournalTail [] TailJournalParams => JournalRecordView, Administer, JournalRead, Get paths::JOURNAL_TAIL;
    JournalExport [] ExportJournalParams => JournalRecordView, Administer, JournalRead, Get paths::JOURNAL_EXPORT;
    JournalVerify [] NoParams => VerifyLine, Administer, JournalRead, Post paths::JOURNAL_VERIFY;
}
