//! Which names survive a crash.

use super::*;

fn names(fs: &SimFs) -> Vec<String> {
    let names = fs.names(Path::new("/")).unwrap();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn a_name_survives_by_the_directorys_sync_and_not_by_the_files() {
    let found = outcomes(|fs| {
        create(&fs.mount(), "file").sync_data().unwrap();
        fs.crash();
        names(fs).len()
    });
    assert_eq!(found, BTreeSet::from([0, 1]));
    let found = outcomes(|fs| {
        let vfs = fs.mount();
        let file = create(&vfs, "file");
        write_all_at(&*file, b"lost", 0).unwrap();
        sync_directory(&*vfs, Path::new("/")).unwrap();
        fs.crash();
        (names(fs).len(), content(fs, "file").len())
    });
    assert_eq!(found, BTreeSet::from([(1, 0), (1, 4)]));
}

#[test]
fn an_unsynced_removal_may_be_undone() {
    let found = outcomes(|fs| {
        durable(fs, "file", b"here");
        fs.mount().remove(&path("file")).unwrap();
        assert!(names(fs).is_empty());
        fs.crash();
        names(fs).is_empty() || content(fs, "file") == b"here"
    });
    assert_eq!(found, BTreeSet::from([true]));
    let found = outcomes(|fs| {
        durable(fs, "file", b"here");
        fs.mount().remove(&path("file")).unwrap();
        fs.crash();
        names(fs).len()
    });
    assert_eq!(found, BTreeSet::from([0, 1]));
}

#[test]
fn a_rename_replaces_as_a_whole() {
    let found = outcomes(|fs| {
        durable(fs, "old", b"old");
        durable(fs, "new", b"new");
        fs.mount().rename(&path("new"), &path("old")).unwrap();
        fs.crash();
        (names(fs).join(" "), content(fs, "old"))
    });
    let before = ("new old".to_owned(), b"old".to_vec());
    let after = ("old".to_owned(), b"new".to_vec());
    assert_eq!(found, BTreeSet::from([before, after]));
}

#[test]
fn changes_of_two_names_survive_apart() {
    let found = outcomes(|fs| {
        let vfs = fs.mount();
        create(&vfs, "one");
        create(&vfs, "two");
        fs.crash();
        names(fs).join(" ")
    });
    assert_eq!(found, ["", "one", "one two", "two"].map(String::from).into());
}

#[test]
fn a_file_that_moves_to_another_directory_is_never_without_a_name() {
    let found = outcomes(|fs| {
        durable(fs, "file", b"x");
        let vfs = fs.mount();
        vfs.create_directory(&path("inner")).unwrap();
        sync_directory(&*vfs, Path::new("/")).unwrap();
        vfs.rename(&path("file"), &path("inner/file")).unwrap();
        fs.crash();
        let is = |name| fs.bytes(&path(name)).is_ok();
        assert!(is("file") || is("inner/file"));
        (is("file"), is("inner/file"))
    });
    assert_eq!(found, BTreeSet::from([(true, false), (true, true), (false, true)]));
}

#[test]
fn a_directory_that_is_lost_takes_its_files_along() {
    let found = outcomes(|fs| {
        let vfs = fs.mount();
        vfs.create_directory(&path("a/b")).unwrap();
        create(&vfs, "a/b/file").sync_data().unwrap();
        sync_directory(&*vfs, &path("a/b")).unwrap();
        sync_directory(&*vfs, &path("a")).unwrap();
        fs.crash();
        fs.bytes(&path("a/b/file")).is_ok()
    });
    assert_eq!(found, BTreeSet::from([false, true]));
}

#[test]
fn a_removed_file_lives_while_it_is_open() {
    let fs = SimFs::new(1);
    let file = durable(&fs, "file", b"open");
    let vfs = fs.mount();
    vfs.remove(&path("file")).unwrap();
    let mut bytes = [0; 4];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"open");
    assert_eq!(vfs.len(&path("file")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(create(&vfs, "file").is_empty().unwrap(), "a new file has the name");
}
