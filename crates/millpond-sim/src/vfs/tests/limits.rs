//! Limits: disk space, descriptors, locks.

use super::*;

#[test]
fn a_full_disk_refuses_growth_and_nothing_else() {
    let fs = SimFs::new(1);
    fs.set_size(Some(10));
    let vfs = fs.mount();
    let file = create(&vfs, "file");
    write_all_at(&*file, &[1; 10], 0).unwrap();
    let error = write_all_at(&*file, &[1], 10).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.allocate(10, 1).unwrap_err().kind(), io::ErrorKind::StorageFull);
    write_all_at(&*file, &[2; 10], 0).unwrap();
    vfs.remove(&path("file")).unwrap();
    let other = create(&vfs, "other");
    write_all_at(&*other, &[1], 0).expect_err("the removed file is open");
    drop(file);
    write_all_at(&*other, &[1], 0).unwrap();
}

#[test]
fn the_disk_becomes_full_at_a_planned_call() {
    let fs = SimFs::new(1);
    let file = durable(&fs, "file", b"");
    fs.fail_after(1, VfsFault::DiskFull);
    write_all_at(&*file, b"a", 0).unwrap();
    let error = write_all_at(&*file, b"b", 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    fs.heal();
    write_all_at(&*file, b"b", 1).unwrap();
}

#[test]
fn descriptors_run_out_and_come_back() {
    let fs = SimFs::new(1);
    fs.set_max_open(Some(1));
    let vfs = fs.mount();
    let file = create(&vfs, "file");
    let error = vfs.open(&path("file"), OpenFlags::READ).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(24));
    drop(file);
    vfs.open(&path("file"), OpenFlags::READ).unwrap();
}

#[test]
fn lock_is_held_until_close_or_crash() {
    let fs = SimFs::new(1);
    let (first, second) = (durable(&fs, "lock", b""), create(&fs.mount(), "lock"));
    assert!(first.try_lock().unwrap() && first.try_lock().unwrap());
    assert!(!second.try_lock().unwrap());
    drop(first);
    assert!(second.try_lock().unwrap());
    fs.crash();
    assert!(create(&fs.mount(), "lock").try_lock().unwrap());
}

#[test]
fn opening_follows_its_flags() {
    let fs = SimFs::new(1);
    let vfs = fs.mount();
    let missing = vfs.open(&path("file"), OpenFlags::WRITE).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    write_all_at(&*create(&vfs, "file"), b"x", 0).unwrap();
    let exists = vfs.open(&path("file"), OpenFlags::CREATE_NEW).unwrap_err();
    assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
    let only_read = vfs.open(&path("file"), OpenFlags::READ).unwrap();
    write_all_at(&*only_read, b"y", 0).unwrap_err();
    let flags = OpenFlags { truncate: true, ..OpenFlags::CREATE };
    assert!(vfs.open(&path("file"), flags).unwrap().is_empty().unwrap());
    let inside = vfs.open(&path("file/inner"), OpenFlags::CREATE).unwrap_err();
    assert_eq!(inside.kind(), io::ErrorKind::NotADirectory);
}
