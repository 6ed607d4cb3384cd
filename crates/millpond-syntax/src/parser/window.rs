//! Windows and their frames.

use super::{Parse, Parser};
use crate::error::SqlState;
use crate::keyword::Keyword;
use crate::tree::{Frame, FrameBound, FrameExclusion, FrameMode, WindowDef};

impl Parser<'_> {
    /// What stands behind OVER.
    pub(super) fn over(&mut self) -> Parse<WindowDef> {
        let location = self.location();
        if self.is_char(b'(') {
            return self.window_specification();
        }
        let name = Some(self.col_id()?);
        Ok(WindowDef {
            name,
            refname: None,
            partition_clause: Vec::new(),
            order_clause: Vec::new(),
            frame: None,
            location,
        })
    }

    /// An entry of WINDOW.
    pub(super) fn window_definition(&mut self) -> Parse<WindowDef> {
        let name = self.col_id()?;
        self.expect_keyword(Keyword::As)?;
        let mut window = self.window_specification()?;
        window.name = Some(name);
        Ok(window)
    }

    fn window_specification(&mut self) -> Parse<WindowDef> {
        let location = self.expect_char(b'(')?.start;
        // These words are names only if nothing else can be meant.
        let clause = match self.keyword() {
            Some(Keyword::Partition) => self.is_keyword_at(1, Keyword::By),
            Some(Keyword::Range | Keyword::Rows | Keyword::Groups) => !self.is_char_at(1, b')'),
            _ => false,
        };
        let refname = if !clause && self.is_col_id() { Some(self.col_id()?) } else { None };
        let mut partition_clause = Vec::new();
        if self.take_keyword(Keyword::Partition) {
            self.expect_keyword(Keyword::By)?;
            partition_clause = self.expr_list()?;
        }
        let order_clause = self.opt_sort_clause()?;
        let frame = self.opt_frame()?;
        self.expect_char(b')')?;
        Ok(WindowDef { name: None, refname, partition_clause, order_clause, frame, location })
    }

    fn opt_frame(&mut self) -> Parse<Option<Frame>> {
        let mode = match self.take_one_of(&[Keyword::Range, Keyword::Rows, Keyword::Groups]) {
            Some(Keyword::Range) => FrameMode::Range,
            Some(Keyword::Rows) => FrameMode::Rows,
            Some(_) => FrameMode::Groups,
            None => return Ok(None),
        };
        let (start, end) = if self.take_keyword(Keyword::Between) {
            let place = self.location();
            let start = self.frame_bound()?;
            self.expect_keyword(Keyword::And)?;
            let end_place = self.location();
            let end = self.frame_bound()?;
            self.check_bounds(&start, &end, place, end_place)?;
            (start, Some(end))
        } else {
            let place = self.location();
            let start = self.frame_bound()?;
            let message = match start {
                FrameBound::UnboundedFollowing => "frame start cannot be UNBOUNDED FOLLOWING",
                FrameBound::OffsetFollowing(_) => {
                    "frame starting from following row cannot end with current row"
                }
                _ => "",
            };
            if !message.is_empty() {
                return Err(self.error_at(message, place).with_code(SqlState::WindowingError));
            }
            (start, None)
        };
        Ok(Some(Frame { mode, start, end, exclusion: self.frame_exclusion()? }))
    }

    fn check_bounds(
        &self,
        start: &FrameBound,
        end: &FrameBound,
        start_place: u32,
        end_place: u32,
    ) -> Parse<()> {
        use FrameBound::{
            CurrentRow, OffsetFollowing, OffsetPreceding, UnboundedFollowing, UnboundedPreceding,
        };
        let (message, place) = match (start, end) {
            (UnboundedFollowing, _) => ("frame start cannot be UNBOUNDED FOLLOWING", start_place),
            (_, UnboundedPreceding) => ("frame end cannot be UNBOUNDED PRECEDING", end_place),
            (CurrentRow, OffsetPreceding(_)) => {
                ("frame starting from current row cannot have preceding rows", end_place)
            }
            (OffsetFollowing(_), OffsetPreceding(_) | CurrentRow) => {
                ("frame starting from following row cannot have preceding rows", end_place)
            }
            _ => return Ok(()),
        };
        Err(self.error_at(message, place).with_code(SqlState::WindowingError))
    }

    fn frame_bound(&mut self) -> Parse<FrameBound> {
        let direction = |parser: &mut Self| match parser
            .take_one_of(&[Keyword::Preceding, Keyword::Following])
        {
            Some(keyword) => Ok(keyword == Keyword::Preceding),
            None => Err(parser.unexpected()),
        };
        let unbounded = self.is_keyword(Keyword::Unbounded)
            && (self.is_keyword_at(1, Keyword::Preceding)
                || self.is_keyword_at(1, Keyword::Following));
        if unbounded {
            self.bump();
            let preceding = direction(self)?;
            return Ok(if preceding {
                FrameBound::UnboundedPreceding
            } else {
                FrameBound::UnboundedFollowing
            });
        }
        if self.take_keywords(&[Keyword::Current, Keyword::Row]) {
            return Ok(FrameBound::CurrentRow);
        }
        let offset = self.a_expr()?;
        let preceding = direction(self)?;
        Ok(if preceding {
            FrameBound::OffsetPreceding(offset)
        } else {
            FrameBound::OffsetFollowing(offset)
        })
    }

    fn frame_exclusion(&mut self) -> Parse<FrameExclusion> {
        if !self.take_keyword(Keyword::Exclude) {
            return Ok(FrameExclusion::NoOthers);
        }
        match self.take_one_of(&[Keyword::Current, Keyword::Group, Keyword::Ties, Keyword::No]) {
            Some(Keyword::Current) => {
                self.expect_keyword(Keyword::Row)?;
                Ok(FrameExclusion::CurrentRow)
            }
            Some(Keyword::Group) => Ok(FrameExclusion::Group),
            Some(Keyword::Ties) => Ok(FrameExclusion::Ties),
            Some(_) => {
                self.expect_keyword(Keyword::Others)?;
                Ok(FrameExclusion::NoOthers)
            }
            None => Err(self.unexpected()),
        }
    }
}
