//! The heap's log records, and what each does to a page ("do is redo").
//!
//! Each record is a function of the page before and of its own bytes. The same functions change
//! pages in normal work and in replay (heap rule 1). docs/file-format.md ("Log records of the
//! heap") gives their bytes.

use millpond_buffer::{BlockNumber, PAGE_SIZE};
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::header::{TUPLE_HEADER_LEN, TupleFlags};
use super::input::Input;
use super::page::{self, Mark, NewTuple};
use super::prune::PrunePlan;
use crate::access::Tid;
use crate::page::{KIND, PageError, PageMut};
use crate::transam::{CommandId, Xid};

/// One tuple is added.
pub const INSERT: u8 = 1;
/// Several tuples of one command are added to one page.
pub const INSERT_MANY: u8 = 2;
/// A tuple is deleted.
pub const DELETE: u8 = 3;
/// A tuple is replaced by one on the same page.
pub const UPDATE: u8 = 4;
/// A tuple is replaced by one on another page.
pub const UPDATE_MOVED: u8 = 5;
/// A tuple is locked.
pub const LOCK: u8 = 6;
/// Versions that no snapshot can see are removed, old ones frozen, line pointers freed.
pub const PRUNE: u8 = 7;
/// Block 0 becomes an empty heap page first.
pub const INIT_PAGE: u8 = 0x80;

const MANY_ALL_VISIBLE: u8 = 1;

fn put_tuple_head(out: &mut Vec<u8>, new: &NewTuple<'_>) {
    out.extend_from_slice(&new.offset.to_le_bytes());
    out.extend_from_slice(&new.flags.0.to_le_bytes());
    out.extend_from_slice(&new.natts.to_le_bytes());
    out.extend_from_slice(&new.cid.0.to_le_bytes());
    out.extend_from_slice(&new.xmin.0.to_le_bytes());
}

/// Appends a *tuple*.
pub fn encode_tuple(out: &mut Vec<u8>, new: &NewTuple<'_>) {
    put_tuple_head(out, new);
    out.extend_from_slice(new.payload);
}

fn decode_tuple_head<'a>(input: &mut Input<'a>) -> Result<NewTuple<'a>, PageError> {
    Ok(NewTuple {
        offset: input.u16()?,
        flags: TupleFlags(input.u16()?),
        natts: input.u16()?,
        cid: CommandId(input.u32()?),
        xmin: Xid(input.u64()?),
        payload: &[],
    })
}

fn decode_tuple(data: &[u8]) -> Result<NewTuple<'_>, PageError> {
    let mut input = Input(data);
    let mut new = decode_tuple_head(&mut input)?;
    new.payload = input.0;
    Ok(new)
}

/// Appends a *mark*.
pub fn encode_mark(out: &mut Vec<u8>, mark: &Mark) {
    out.extend_from_slice(&mark.offset.to_le_bytes());
    out.extend_from_slice(&mark.flags.0.to_le_bytes());
    out.extend_from_slice(&mark.cid.0.to_le_bytes());
    out.extend_from_slice(&mark.xmax.0.to_le_bytes());
    out.extend_from_slice(&mark.next.block.0.to_le_bytes());
    out.extend_from_slice(&mark.next.offset.to_le_bytes());
}

fn decode_mark(input: &mut Input<'_>) -> Result<Mark, PageError> {
    Ok(Mark {
        offset: input.u16()?,
        flags: TupleFlags(input.u16()?),
        cid: CommandId(input.u32()?),
        xmax: Xid(input.u64()?),
        next: Tid::new(BlockNumber(input.u32()?), input.u16()?),
    })
}

/// Appends the data of an UPDATE: the old version's mark, and the new version as a difference from
/// the old columns.
pub fn encode_update(out: &mut Vec<u8>, mark: &Mark, new: &NewTuple<'_>, old_payload: &[u8]) {
    encode_mark(out, mark);
    put_tuple_head(out, new);
    let shared = old_payload.iter().zip(new.payload).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old_payload[shared..], &new.payload[shared..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    out.extend_from_slice(&(shared as u16).to_le_bytes());
    out.extend_from_slice(&(tail as u16).to_le_bytes());
    out.extend_from_slice(&new_rest[..new_rest.len() - tail]);
}

/// Rows for [`encode_many`]: line pointer, flags, number of columns, columns.
pub type ManyRow<'a> = (u16, TupleFlags, u16, &'a [u8]);

/// Appends the data of an INSERT_MANY.
pub fn encode_many(
    out: &mut Vec<u8>,
    xmin: Xid,
    cid: CommandId,
    all_visible: bool,
    rows: &[ManyRow<'_>],
) {
    out.extend_from_slice(&xmin.0.to_le_bytes());
    out.extend_from_slice(&cid.0.to_le_bytes());
    out.extend_from_slice(&[if all_visible { MANY_ALL_VISIBLE } else { 0 }, 0]);
    out.extend_from_slice(&(rows.len() as u16).to_le_bytes());
    for (offset, flags, natts, payload) in rows {
        let mut head = [0; 8];
        head[..2].copy_from_slice(&offset.to_le_bytes());
        head[2..4].copy_from_slice(&flags.0.to_le_bytes());
        head[4..6].copy_from_slice(&natts.to_le_bytes());
        head[6..].copy_from_slice(&(payload.len() as u16).to_le_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(payload);
    }
}

/// Applies the record to the page of block `block`.
pub fn apply<P: PageMut + ?Sized>(
    page: &mut P,
    info: u8,
    block: usize,
    data: &[u8],
) -> Result<(), PageError> {
    if info == INSERT_MANY | INIT_PAGE && block == 0 {
        return fill_new(page, data);
    }
    if info & INIT_PAGE != 0 && block == 0 {
        page::init(page);
    } else {
        page::check(page)?;
    }
    let mut input = Input(data);
    match (info & !INIT_PAGE, block) {
        (INSERT, 0) | (UPDATE_MOVED, 0) => {
            page::put_tuple(page, &decode_tuple(data)?)?;
            if !mutant!("heap-insertion-leaves-all-visible") {
                page::set_all_visible(page, false);
            }
            Ok(())
        }
        (INSERT_MANY, 0) => apply_many(page, &mut input),
        (DELETE, 0) | (LOCK, 0) | (UPDATE_MOVED, 1) => {
            let mark = decode_mark(&mut input)?;
            input.end()?;
            page::mark(page, &mark)
        }
        (UPDATE, 0) => apply_update(page, &mut input),
        (PRUNE, 0) => PrunePlan::decode(data)?.apply(page),
        _ => Err(PageError::Malformed("unknown heap record")),
    }
}

/// Builds a page of many tuples in a buffer of its own. A frame takes one long write much faster
/// than many short ones.
fn fill_new<P: PageMut + ?Sized>(page: &mut P, data: &[u8]) -> Result<(), PageError> {
    let mut filled = [0; PAGE_SIZE];
    page::init(&mut filled);
    apply_many(&mut filled, &mut Input(data))?;
    // The bytes before that are the pool's.
    page.write(KIND, &filled[KIND..]);
    Ok(())
}

fn apply_many<P: PageMut + ?Sized>(page: &mut P, input: &mut Input<'_>) -> Result<(), PageError> {
    let (xmin, cid) = (Xid(input.u64()?), CommandId(input.u32()?));
    let (flags, _reserved, count) = (input.u8()?, input.u8()?, input.u16()?);
    for _ in 0..count {
        let (offset, flags) = (input.u16()?, TupleFlags(input.u16()?));
        let (natts, len) = (input.u16()?, input.u16()?);
        let payload = input.take(len as usize)?;
        page::put_tuple(page, &NewTuple { offset, xmin, cid, flags, natts, payload })?;
    }
    page::set_all_visible(page, flags & MANY_ALL_VISIBLE != 0);
    input.end()
}

fn apply_update<P: PageMut + ?Sized>(page: &mut P, input: &mut Input<'_>) -> Result<(), PageError> {
    let mark = decode_mark(input)?;
    let mut new = decode_tuple_head(input)?;
    let (shared, tail) = (input.u16()? as usize, input.u16()? as usize);
    let middle = input.0;
    let Some(old) = page::tuple(page, mark.offset) else {
        return Err(PageError::Line { offset: mark.offset, what: "no tuple to update" });
    };
    let old = old.start + TUPLE_HEADER_LEN..old.end;
    let len = shared + middle.len() + tail;
    if shared + tail > old.len() || len > PAGE_SIZE {
        return Err(PageError::Malformed("update shares more than the old version has"));
    }
    // Most rows are short: no page of zeros for them.
    let mut columns = SmallVec::<[u8; 512]>::from_elem(0, len);
    page.copy(old.start, &mut columns[..shared]);
    columns[shared..shared + middle.len()].copy_from_slice(middle);
    page.copy(old.end - tail, &mut columns[shared + middle.len()..]);
    new.payload = &columns;
    page::put_tuple(page, &new)?;
    page::mark(page, &mark)
}
