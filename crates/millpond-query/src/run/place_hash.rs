//! Bob Jenkins's hash lookup3 of a few words, with PostgreSQL's start values.

/// The three words of the hash's state.
type State = [u32; 3];

/// How far words are rotated in each step of taking three words in, and at the end. A step changes
/// the word at its number by the one before it.
const MIX: [u32; 6] = [4, 6, 8, 16, 19, 4];
const END: [u32; 7] = [14, 11, 25, 16, 4, 14, 24];

/// The hash of up to three words.
pub(super) fn hash_of_words(words: &[u32]) -> u32 {
    let bytes = u32::try_from(words.len() * 4).unwrap_or(u32::MAX);
    let mut state = [0x9e37_79b9_u32.wrapping_add(bytes).wrapping_add(3_923_095); 3];
    for (own, word) in state.iter_mut().zip(words) {
        *own = own.wrapping_add(*word);
    }
    // Three words are mixed before the end, fewer are not.
    if words.len() == 3 {
        mix(&mut state);
    }
    end(&mut state);
    state[2]
}

/// The hash of a number, the same for both zeros and for all that are not a number.
pub(super) fn hash_of_float(value: f64) -> u32 {
    if value == 0.0 {
        return 0;
    }
    let bits = if value.is_nan() { 0x7ff8 << 48 } else { value.to_bits() };
    hash_of_words(&[bits as u32, (bits >> 32) as u32])
}

fn mix(state: &mut State) {
    for (step, by) in MIX.into_iter().enumerate() {
        let [own, before, after] = [step % 3, (step + 2) % 3, (step + 1) % 3];
        let other = state[before];
        state[own] = state[own].wrapping_sub(other) ^ other.rotate_left(by);
        state[before] = other.wrapping_add(state[after]);
    }
}

fn end(state: &mut State) {
    for (step, by) in END.into_iter().enumerate() {
        let [own, before] = [(step + 2) % 3, (step + 1) % 3];
        let other = state[before];
        state[own] = (state[own] ^ other).wrapping_sub(other.rotate_left(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL's `hashfloat8` answers.
    #[test]
    fn hashes_of_numbers_are_those_of_postgresql() {
        for (value, hash) in FLOATS {
            assert_eq!(hash_of_float(value) as i32, hash, "{value}");
        }
    }

    const FLOATS: [(f64, i32); 7] = [
        (0.0, 0),
        (-0.0, 0),
        (1.0, 376_496_956),
        (0.5, 109_745_130),
        (-200.0, -1_744_789_611),
        (f64::NAN, -1_275_764_840),
        (1e300, 318_710_814),
    ];
}
