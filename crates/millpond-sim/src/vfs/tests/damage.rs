//! Disks that return wrong data or lose writes.

use super::*;

fn first_byte(file: &dyn VfsFile) -> io::Result<u8> {
    let mut bytes = [0; 1];
    read_exact_at(file, &mut bytes, 0)?;
    Ok(bytes[0])
}

#[test]
fn a_lost_write_succeeds_and_does_nothing() {
    let fs = SimFs::new(1);
    let file = durable(&fs, "file", b"old");
    fs.fail_after(0, VfsFault::LostWrite);
    write_all_at(&*file, b"new", 0).unwrap();
    assert_eq!(content(&fs, "file"), b"old");
}

#[test]
fn a_misdirected_write_lands_elsewhere() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", &[0; 16_384]);
        fs.fail_after(0, VfsFault::MisdirectedWrite);
        write_all_at(&*file, &[1; 4096], 4096).unwrap();
        content(fs, "file").iter().position(|byte| *byte == 1).unwrap()
    });
    assert!(found.len() > 2 && found.iter().all(|at| at % 4096 == 0), "{found:?}");
}

#[test]
fn a_stale_read_shows_what_was_before_the_last_sync() {
    let fs = SimFs::new(1);
    let file = durable(&fs, "file", b"1");
    write_all_at(&*file, b"2", 0).unwrap();
    file.sync_data().unwrap();
    write_all_at(&*file, b"3", 0).unwrap();
    file.sync_data().unwrap();
    fs.fail_after(0, VfsFault::StaleRead);
    assert_eq!(first_byte(&*file).unwrap(), b'2');
    assert_eq!(first_byte(&*file).unwrap(), b'3');
}

#[test]
fn a_flipped_read_is_wrong_once() {
    let fs = SimFs::new(1);
    let file = durable(&fs, "file", &[0]);
    fs.fail_after(0, VfsFault::FlippedRead);
    assert_eq!(first_byte(&*file).unwrap().count_ones(), 1);
    assert_eq!(first_byte(&*file).unwrap(), 0);
}

#[test]
fn a_latent_sector_can_not_be_read_until_it_is_written() {
    let fs = SimFs::new(1);
    let file = durable(&fs, "file", &[0; 4096]);
    fs.fail_after(0, VfsFault::LatentSector);
    assert_eq!(first_byte(&*file).unwrap_err().raw_os_error(), Some(5));
    first_byte(&*file).unwrap_err();
    let mut elsewhere = [0; 512];
    read_exact_at(&*file, &mut elsewhere, 1024).unwrap();
    write_all_at(&*file, &[1; 512], 0).unwrap();
    assert_eq!(first_byte(&*file).unwrap(), 1);
}
