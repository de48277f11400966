//! Whether a failed program may have failed because of the sandbox.
//!
//! A program that is denied something says so in the words of the system, of its language or of its resolver. One that fails for reasons of its own, such as a test that
//! does not pass, should not make anybody look for them in the sandbox.

use palyra_sandbox::Exit;

/// What programs print, in lower case, when the kernel denies them something that a sandbox denies.
const PHRASES: [&str; 15] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "function not implemented",
    "network is unreachable",
    "network unreachable",
    "no route to host",
    "connection refused",
    "could not resolve",
    "couldn't resolve",
    "name resolution",
    "name or service not known",
    "failed to lookup address",
    "no such host",
    "bad system call",
];
/// The same by the names that languages use for errors.
const NAMES: [&str; 11] = [
    "EACCES",
    "EPERM",
    "EROFS",
    "ENOSYS",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "ECONNREFUSED",
    "ENOTFOUND",
    "EAI_AGAIN",
    "PermissionError",
    "PermissionDenied",
];
/// The exit codes by which shells say that a program cannot be executed or is not there: in the sandbox there are fewer.
const SHELL: [i32; 2] = [126, 127];
/// The signal that ends a program whose call a filter of its own does not permit.
const BAD_CALL: i32 = 31;

/// Whether what a failed program printed, or how it ended, is what the sandbox's denials look like.
pub(super) fn may_be_denied(exit: Exit, printed: &[&str]) -> bool {
    let told = match exit {
        Exit::Code(code) => SHELL.contains(&code),
        Exit::Signal(signal) => signal == BAD_CALL,
    };
    told || printed.iter().any(|text| mentions_denial(text))
}

fn mentions_denial(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    PHRASES.iter().any(|phrase| lower.contains(phrase)) || words.any(|word| NAMES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_of_a_denial_is_recognised() {
        for text in [
            "touch: cannot touch '/etc/x': Read-only file system",
            "sh: 1: cannot create /etc/x: Permission denied",
            "PermissionError: [Errno 13] Permission denied: '/root'",
            "Error: EACCES: permission denied, open '/etc/x'",
            "curl: (6) Could not resolve host: example.org",
            "getaddrinfo EAI_AGAIN registry.npmjs.org",
            "dial tcp: lookup example.org: no such host",
            "Os { code: 1, kind: PermissionDenied, message: \"Operation not permitted\" }",
            "connect: Network is unreachable",
            "psql: error: connection to server at \"127.0.0.1\", port 5432 failed: Connection refused",
        ] {
            assert!(may_be_denied(Exit::Code(1), &["", text]), "{text}");
        }
        assert!(may_be_denied(Exit::Code(127), &["sh: 1: cargo: not found"]));
        assert!(may_be_denied(Exit::Signal(31), &[]));
    }

    #[test]
    fn an_ordinary_failure_is_not() {
        for text in [
            "assertion `left == right` failed\n  left: 1\n right: 2\ntest result: FAILED. 0 passed; 1 failed",
            "FAILED (failures=1)",
            "test permission_denied_is_reported ... FAILED",
            "cat: missing: No such file or directory",
            "error[E0425]: cannot find value `x` in this scope",
            "npm ERR! Test failed. See above for more details.",
            "ENOTFOUNDED and MYEPERM are no errors",
        ] {
            assert!(!may_be_denied(Exit::Code(1), &[text, ""]), "{text}");
        }
        assert!(!may_be_denied(Exit::Code(101), &[]) && !may_be_denied(Exit::Signal(6), &[]));
    }
}
