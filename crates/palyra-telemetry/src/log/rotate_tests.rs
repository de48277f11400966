//! Rotation, and everything that can go wrong with it, on a real file system.

use super::*;

fn options(directory: &Path, max_bytes: u64, keep: u32) -> LogFile {
    LogFile { path: directory.join("logs/palyrad.log"), max_bytes, keep }
}

fn lines(texts: &[String]) -> Vec<Box<[u8]>> {
    texts.iter().map(|text| text.as_bytes().into()).collect()
}

fn line(number: usize) -> String {
    format!("line {number:05}\n")
}

/// All lines in all files, oldest first.
fn kept(file: &RotatingFile) -> String {
    let mut paths: Vec<PathBuf> = (1..=file.keep + 1).rev().map(|number| file.numbered(number)).collect();
    paths.push(file.path.clone());
    paths.iter().map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
}

#[test]
fn no_line_is_lost_or_cut_at_rotation() {
    let directory = tempfile::tempdir().unwrap();
    // A line has 11 bytes: a file of 100 holds nine.
    let mut file = RotatingFile::open(&options(directory.path(), 100, 50)).unwrap();
    let texts: Vec<String> = (0..300).map(line).collect();
    for chunk in texts.chunks(7) {
        assert_eq!(file.write_lines(&lines(chunk)), chunk.len());
    }
    assert_eq!(kept(&file), texts.concat());
    for number in 1..=33 {
        let content = fs::read_to_string(file.numbered(number)).unwrap();
        assert_eq!(content.len(), 99, "file {number} is full and not larger");
        assert!(content.ends_with('\n'));
    }
}

#[test]
fn only_so_many_files_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = RotatingFile::open(&options(directory.path(), 22, 3)).unwrap();
    for number in 0..20 {
        file.write_lines(&lines(&[line(number)]));
    }
    assert_eq!(kept(&file), (12..20).map(line).collect::<String>(), "two in each of three files, two in the open one");
    assert!(!file.numbered(4).exists());
}

#[test]
fn files_are_for_their_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path(), 20, 2);
    fs::create_dir(directory.path().join("logs")).unwrap();
    fs::write(&options.path, "old\n").unwrap();
    fs::set_permissions(&options.path, Permissions::from_mode(0o644)).unwrap();
    let mut file = RotatingFile::open(&options).unwrap();
    for number in 0..4 {
        file.write_lines(&lines(&[line(number)]));
    }
    for path in [options.path.clone(), file.numbered(1), file.numbered(2)] {
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert!(kept(&file).starts_with(&line(1)), "what was there counted towards the size of the first file");
}

#[test]
fn a_line_longer_than_a_file_stays_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = RotatingFile::open(&options(directory.path(), 20, 5)).unwrap();
    let long = format!("{}\n", "x".repeat(500));
    let texts = [line(1), long.clone(), line(2)];
    assert_eq!(file.write_lines(&lines(&texts)), 3);
    assert_eq!(kept(&file), texts.concat());
    assert_eq!(fs::read_to_string(file.numbered(1)).unwrap(), long);
}

#[test]
fn a_file_that_somebody_took_away_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = RotatingFile::open(&options(directory.path(), 1_000, 2)).unwrap();
    file.write_lines(&lines(&[line(1)]));
    fs::remove_file(&file.path).unwrap();
    file.write_lines(&lines(&[line(2)]));
    assert_eq!(fs::read_to_string(&file.path).unwrap(), line(2));
    fs::rename(&file.path, directory.path().join("elsewhere")).unwrap();
    file.write_lines(&lines(&[line(3)]));
    assert_eq!(fs::read_to_string(&file.path).unwrap(), line(3));
}

#[test]
fn rotation_that_fails_costs_no_line() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = RotatingFile::open(&options(directory.path(), 40, 1)).unwrap();
    // A directory that is not empty cannot be replaced by a file, whoever asks.
    fs::create_dir_all(file.numbered(1).join("in the way")).unwrap();
    let texts: Vec<String> = (0..50).map(line).collect();
    for text in &texts {
        assert_eq!(file.write_lines(&lines(std::slice::from_ref(text))), 1);
    }
    assert_eq!(fs::read_to_string(&file.path).unwrap(), texts.concat());
    fs::remove_dir_all(file.numbered(1)).unwrap();
    file.write_lines(&lines(&(50..60).map(line).collect::<Vec<_>>()));
    assert!(kept(&file).contains(&line(59)));
    assert!(file.numbered(1).is_file(), "it rotates again when it can");
}

#[test]
fn only_an_ordinary_file_is_a_log() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    let linked = directory.path().join("linked.log");
    std::os::unix::fs::symlink(&elsewhere, &linked).unwrap();
    for path in [linked, directory.path().to_owned(), PathBuf::from("/dev/full")] {
        let options = LogFile { path: path.clone(), max_bytes: 100, keep: 1 };
        assert!(RotatingFile::open(&options).is_err(), "{}", path.display());
    }
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
}
