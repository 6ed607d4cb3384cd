//! Which function or operator of several with one name a call means, by PostgreSQL's rules (its
//! documentation, chapter "Type Conversion").

use smallvec::SmallVec;

use super::catalog::{Param, Proc};
use crate::DataType;
use crate::expr::types::{Category, Ty, category, is_implicit, is_preferred, unify};

/// The types that a call converts its arguments to.
pub(crate) type Params = SmallVec<[Param; 4]>;

/// One of the functions or operators that a call may mean.
#[derive(Clone)]
pub(crate) struct Candidate<T> {
    pub(crate) item: T,
    pub(crate) params: Params,
}

/// What a call means.
pub(crate) enum Choice<T> {
    One(Candidate<T>),
    None,
    Ambiguous,
}

/// The functions among `procs` that can have this number of arguments.
pub(crate) fn candidates(procs: &[&'static Proc], count: usize) -> Vec<Candidate<&'static Proc>> {
    let mut found = Vec::new();
    for proc in procs {
        let fixed = proc.args.len();
        let fits = if proc.variadic { count >= fixed } else { count == fixed };
        if !fits {
            continue;
        }
        let mut params = Params::from_slice(proc.args);
        if let Some(&last) = proc.args.last() {
            params.resize(count, last);
        }
        found.push(Candidate { item: *proc, params });
    }
    // One with just as many arguments goes before one of any number.
    let fixed: Vec<Params> =
        found.iter().filter(|c| !c.item.variadic).map(|c| c.params.clone()).collect();
    found.retain(|c| !c.item.variadic || !fixed.contains(&c.params));
    found
}

/// Chooses for arguments of these types.
pub(crate) fn choose<T>(mut candidates: Vec<Candidate<T>>, args: &[Ty]) -> Choice<T> {
    let exact =
        |c: &Candidate<T>| c.params.iter().zip(args).all(|(param, ty)| is_exactly(*param, *ty));
    if let Some(place) = candidates.iter().position(exact) {
        return Choice::One(candidates.swap_remove(place));
    }
    candidates.retain(|c| {
        c.params.iter().zip(args).all(|(param, ty)| accepts(*param, *ty)) && are_alike(c, args)
    });
    if candidates.is_empty() {
        return Choice::None;
    }
    if candidates.len() > 1 {
        keep_best(&mut candidates, args, is_exactly);
    }
    if candidates.len() > 1 {
        keep_best(&mut candidates, args, |param, ty| {
            is_exactly(param, ty) || is_preferred_for(param, ty)
        });
    }
    if candidates.len() > 1 {
        by_unknown(&mut candidates, args);
    }
    match candidates.pop() {
        Some(one) if candidates.is_empty() => Choice::One(one),
        _ => Choice::Ambiguous,
    }
}

/// The same for a binary operator: beside a literal of unknown type, operators with two sides of
/// the known type come first.
pub(crate) fn choose_binary<T>(candidates: Vec<Candidate<T>>, args: [Ty; 2]) -> Choice<T> {
    let same = match args {
        [Ty::Unknown, known @ Ty::Known(_)] | [known @ Ty::Known(_), Ty::Unknown] => known,
        _ => return choose(candidates, &args),
    };
    let exact = |c: &Candidate<T>| c.params.iter().all(|param| is_exactly(*param, same));
    match candidates.iter().position(exact) {
        Some(place) => {
            let mut candidates = candidates;
            Choice::One(candidates.swap_remove(place))
        }
        None => choose(candidates, &args),
    }
}

fn is_exactly(param: Param, ty: Ty) -> bool {
    matches!((param, ty), (Param::Type(wanted), Ty::Known(own)) if wanted.oid() == own.oid())
}

fn accepts(param: Param, ty: Ty) -> bool {
    match (param, ty) {
        (Param::Void, _) => false,
        (Param::Type(wanted), Ty::Known(own)) => {
            wanted.oid() == own.oid() || is_implicit(own, wanted)
        }
        (Param::AnyArray | Param::AnyCompatibleArray, Ty::Known(own)) => own.element().is_some(),
        (Param::AnyNonArray, Ty::Known(own)) => own.element().is_none(),
        _ => true,
    }
}

/// Whether arguments that must be of one type are.
fn are_alike<T>(candidate: &Candidate<T>, args: &[Ty]) -> bool {
    let mut element: Option<DataType> = None;
    let same = candidate.params.iter().zip(args).all(|(param, ty)| {
        let own = match (param, ty) {
            (Param::AnyElement | Param::AnyNonArray, Ty::Known(own)) => Some(*own),
            (Param::AnyArray, Ty::Known(own)) => own.element(),
            _ => None,
        };
        own.is_none_or(|own| element.get_or_insert(own).oid() == own.oid())
    });
    same && common_type(&candidate.params, args).is_ok()
}

/// The type that the arguments have in common which are converted to one; `Err` if there is none.
pub(crate) fn common_type(params: &[Param], args: &[Ty]) -> Result<Ty, (DataType, DataType)> {
    let compatible = params.iter().zip(args).filter_map(|(param, ty)| match (param, ty) {
        (Param::AnyCompatible, ty) => Some(*ty),
        (Param::AnyCompatibleArray, Ty::Known(own)) => own.element().map(Ty::Known),
        _ => None,
    });
    unify(compatible)
}

fn is_preferred_for(param: Param, ty: Ty) -> bool {
    match (param, ty) {
        (Param::Type(wanted), Ty::Known(own)) => {
            category(wanted) == category(own) && is_preferred(wanted)
        }
        _ => false,
    }
}

/// Keeps the candidates that have most of their arguments of known type as they should be.
fn keep_best<T>(candidates: &mut Vec<Candidate<T>>, args: &[Ty], good: impl Fn(Param, Ty) -> bool) {
    let score = |c: &Candidate<T>| {
        c.params.iter().zip(args).filter(|(param, ty)| good(**param, **ty)).count()
    };
    let best = candidates.iter().map(score).max().unwrap_or(0);
    candidates.retain(|c| score(c) == best);
}

/// Decides by the arguments of unknown type.
fn by_unknown<T>(candidates: &mut Vec<Candidate<T>>, args: &[Ty]) {
    let unknown = |place: &usize| args[*place] == Ty::Unknown;
    let places: SmallVec<[usize; 4]> = (0..args.len()).filter(unknown).collect();
    if places.is_empty() {
        return;
    }
    // The category of each place, and whether only preferred types will do there.
    let wanted: Option<SmallVec<[(Kind, bool); 4]>> =
        places.iter().map(|&place| kind_at(candidates, place)).collect();
    if let Some(wanted) = wanted {
        let fits = |c: &Candidate<T>| {
            places.iter().zip(&wanted).all(|(&place, &(kind, only_preferred))| {
                let param = c.params[place];
                kind_of(param) == kind && (!only_preferred || is_preferred_param(param))
            })
        };
        if candidates.iter().any(fits) {
            candidates.retain(fits);
        }
    }
    if candidates.len() < 2 {
        return;
    }
    // All known arguments are of one type: so may be the unknown ones.
    let mut known = args.iter().filter_map(|ty| match ty {
        Ty::Known(ty) => Some(*ty),
        Ty::Unknown => None,
    });
    let Some(first) = known.next() else { return };
    if known.all(|ty| ty.oid() == first.oid()) {
        let assumed: SmallVec<[Ty; 4]> = args.iter().map(|_| Ty::Known(first)).collect();
        let fits = |c: &Candidate<T>| {
            places.iter().all(|&place| accepts(c.params[place], Ty::Known(first)))
                && are_alike(c, &assumed)
        };
        if candidates.iter().filter(|c| fits(c)).count() == 1 {
            candidates.retain(fits);
        }
    }
}

/// A category, of which pseudo-types have one of their own.
type Kind = Option<Category>;

fn kind_of(param: Param) -> Kind {
    match param {
        Param::Type(ty) => Some(category(ty)),
        _ => None,
    }
}

fn is_preferred_param(param: Param) -> bool {
    matches!(param, Param::Type(ty) if is_preferred(ty))
}

/// The category that an unknown argument should have: strings if any candidate takes one there,
/// else the one that all agree on. With it: whether a candidate takes the category's preferred
/// type.
fn kind_at<T>(candidates: &[Candidate<T>], place: usize) -> Option<(Kind, bool)> {
    let kinds = || candidates.iter().map(|c| kind_of(c.params[place]));
    let string = Some(Category::String);
    let kind = if kinds().any(|kind| kind == string) {
        string
    } else {
        let first = kinds().next()?;
        if kinds().any(|kind| kind != first) {
            return None;
        }
        first
    };
    let preferred = candidates
        .iter()
        .any(|c| kind_of(c.params[place]) == kind && is_preferred_param(c.params[place]));
    Some((kind, preferred))
}
