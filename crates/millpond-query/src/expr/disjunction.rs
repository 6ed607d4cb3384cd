//! Conditions that all sides of an OR have: they hold beside it, where joins and indexes use them,
//! and where rows that fail them fail at once.

use std::slice;

use crate::expr::Expr;

/// `arms` with OR between them: `(a AND b) OR (a AND c)` as `a AND (b OR c)`.
pub(super) fn disjunction(arms: Vec<Expr>) -> Expr {
    factored_out(arms, |e| !e.is_volatile())
}

/// The same, with conditions only that can't fail: they may be evaluated for rows for which those
/// before them in their arm do not hold.
pub(super) fn careful_disjunction(arms: Vec<Expr>) -> Expr {
    factored_out(arms, cannot_fail)
}

/// The condition that holds when one of these does.
pub(crate) fn one_of(mut arms: Vec<Expr>) -> Expr {
    match (arms.len(), arms.pop()) {
        (1, Some(one)) => one,
        (_, last) => Expr::Or(arms.into_iter().chain(last).collect()),
    }
}

fn cannot_fail(e: &Expr) -> bool {
    let mut is_safe = true;
    e.walk(&mut |part| {
        is_safe &= matches!(
            part,
            Expr::Column(_)
                | Expr::Const(_)
                | Expr::Compare(..)
                | Expr::In(..)
                | Expr::Among(_)
                | Expr::IsNull(..)
                | Expr::Not(_)
        );
    });
    is_safe
}

fn factored_out(mut arms: Vec<Expr>, may_move: impl Fn(&Expr) -> bool) -> Expr {
    let Some((first, others)) = arms.split_first() else { return Expr::Or(arms) };
    let is_in_all = |e: &&Expr| others.iter().all(|arm| conjuncts(arm).contains(e));
    let mut common: Vec<Expr> = Vec::new();
    for e in conjuncts(first).iter().filter(is_in_all) {
        if may_move(e) && !common.contains(e) {
            common.push(e.clone());
        }
    }
    if common.is_empty() || others.is_empty() {
        return Expr::Or(arms);
    }
    for arm in &mut arms {
        let rest = conjuncts(arm).iter().filter(|e| !common.contains(e)).cloned();
        *arm = Expr::And(rest.collect());
    }
    // An arm that asks for nothing else makes the others irrelevant.
    if !arms.iter().any(|arm| conjuncts(arm).is_empty()) {
        common.push(Expr::Or(arms.into_iter().map(alone).collect()));
    }
    alone(Expr::And(common))
}

fn conjuncts(arm: &Expr) -> &[Expr] {
    match arm {
        Expr::And(list) => list,
        other => slice::from_ref(other),
    }
}

/// A conjunction of one condition is that condition.
fn alone(e: Expr) -> Expr {
    match e {
        Expr::And(mut list) if list.len() == 1 => list.pop().unwrap_or(Expr::And(list)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn column(number: usize) -> Expr {
        Expr::Column(number)
    }

    fn and(list: &[usize]) -> Expr {
        Expr::And(list.iter().map(|number| column(*number)).collect())
    }

    #[test]
    fn what_all_arms_have_comes_first() {
        let found = disjunction(vec![and(&[1, 2]), and(&[3, 1]), and(&[1, 4, 5])]);
        let rest = Expr::Or(vec![column(2), column(3), and(&[4, 5])]);
        assert_eq!(found, Expr::And(vec![column(1), rest]));
    }

    #[test]
    fn an_arm_without_more_decides() {
        assert_eq!(disjunction(vec![and(&[1, 2]), column(1)]), column(1));
        assert_eq!(disjunction(vec![column(1), column(1)]), column(1));
    }

    #[test]
    fn arms_without_common_conditions_stay() {
        for arms in [vec![and(&[1, 2]), and(&[3, 4])], vec![column(1), column(2)]] {
            assert_eq!(disjunction(arms.clone()), Expr::Or(arms));
        }
        let one = vec![Expr::Const(Value::Bool(true))];
        assert_eq!(disjunction(one.clone()), Expr::Or(one));
    }
}
