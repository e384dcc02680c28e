"""The work of a draw is the same whatever it draws: bits, steps, and the time of the kernels.

Time itself is noisy on a shared machine, so work is counted first: random bytes, lines of Python
that are run, and lines of the kernels when they are run as Python. Where a draw may be thrown away
and made again, the number of tries is compared with what was accepted: they are independent. Then
processor time is measured on batches of chosen words. Twins that count up to their value, that
search until they find and that skip what they can must fail the same checks.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from numba import njit
from scipy import stats
from tests.noise.noise_helpers import SIGNIFICANCE, exp, geometric_mass

from tulle import noise
from tulle.core.source import Source
from tulle.graphs.mechanisms.ladder import draw_ladder
from tulle.noise import kernels as _kernels
from tulle.noise import source as bits
from tulle.noise.bernoulli import _FEW_COINS, fixed_coins
from tulle.noise.select import Choice
from tulle.noise.source import Bits, coin_exponents, coin_floor, coin_thresholds
from tulle.noise.tables import WORD_BITS, laplace_table, ranks
from tulle.noise.xor import kernels as xor_kernels
from tulle.noise.xor.patterns import response_bits, uniform_subsets


class Counting(Source):
    """A replayable source that counts what is taken, and says first what it is told."""

    def __init__(self, seed=1, first=b""):
        self.rest = noise.SeededSource(seed)
        self.first = first
        self.taken = 0

    def read(self, count):
        self.taken += count
        said, self.first = self.first[:count], self.first[count:]
        return said + self.rest.read(count - len(said))


def work(action):
    """Run something; return what it gives and how many lines of Python that took."""
    lines = 0

    def tracer(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return tracer

    before = sys.gettrace()
    # The collector runs when it likes, and others hang code of theirs on it.
    gc.disable()
    sys.settrace(tracer)
    try:
        found = action()
    finally:
        sys.settrace(before)
        gc.enable()
    return found, lines


def watch_work(draw, draws):
    """Return (value, bytes taken, lines run) for draws of a scalar sampler."""
    for _ in range(20):  # caches fill, and the interpreter adapts, before anything is counted
        work(lambda: draw(Counting()))
    seen = []
    for seed in range(draws):
        source = Counting(seed)
        value, lines = work(lambda source=source: draw(source))
        seen.append((value, source.taken, lines))
    return seen


def check_same_work(seen):
    """Assert that all values took the same work, and that there were several."""
    assert len({value for value, _, _ in seen}) > 1
    assert len({(taken, lines) for _, taken, lines in seen}) == 1


def check_independent_work(seen):
    """Assert that work is a function of the tries alone, and tries independent of the value.

    What is thrown away and drawn again takes more work. The number of tries has a geometric law of
    its own; given what was accepted it must be the same.
    """
    by_taken = defaultdict(set)
    for _, taken, lines in seen:
        by_taken[taken].add(lines)
    # Bits are buffered eight bytes at a time: lines may differ by a refill, not by the value.
    assert all(max(lines) - min(lines) <= 6 for lines in by_taken.values())
    sizes = np.array([abs(value) for value, _, _ in seen])
    spent = np.array([lines for _, _, lines in seen])
    assert len(set(sizes.tolist())) > 2
    table = np.zeros((2, 3), dtype=int)
    cuts = np.quantile(sizes, [0.4, 0.8])
    np.add.at(table, ((spent > spent.min() + 6).astype(int), np.searchsorted(cuts, sizes)), 1)
    table = table[:, table.sum(axis=0) > 0]
    if (table.sum(axis=1) > 0).all():
        assert stats.chi2_contingency(table).pvalue > SIGNIFICANCE


SCORES = [0, 3, 3, 7, 8]
STEADY = {
    "geometric": lambda source: noise.geometric(scale=10, source=source),
    "geometric of a tiny epsilon": lambda source: noise.geometric(scale=10**40, source=source),
    "rounded laplace": lambda source: noise.rounded_laplace(scale=7, source=source),
    "bernoulli": lambda source: noise.bernoulli("1/3", source=source),
    "bernoulli of one": lambda source: noise.bernoulli("1/256", source=source),
    "bernoulli_exp": lambda source: noise.bernoulli_exp("1/2", source=source),
    "exponential": lambda source: noise.exponential(
        SCORES, epsilon=1, sensitivity=1, source=source
    ),
    "few coins": lambda source: int(noise.bernoulli("1/3", size=3, source=source).sum()),
    "below a bound that was drawn": lambda source: noise.uniform_below(
        (1, 7, 10**9)[noise.uniform_below(3, source=source)], source=source
    ),
    "a ladder": lambda source: draw_ladder([2, 3, 3, 9], 9, Fraction(1, 2), source),
    "a ladder with a middle": lambda source: draw_ladder(
        [2, 3, 3, 9], 9, Fraction(1, 2), source, Fraction(1, 4)
    ),
}
TRIED = {
    "discrete laplace": (lambda source: noise.discrete_laplace(scale=4, source=source), 500),
    "discrete gaussian": (lambda source: noise.discrete_gaussian(sigma=4, source=source), 300),
    "heavy tails": (lambda source: noise.heavy_tailed(scale=9, power=4, source=source), 400),
    "cauchy tails": (lambda source: noise.heavy_tailed(scale=9, power=2, source=source), 400),
}


@pytest.mark.parametrize("name", STEADY)
def test_the_same_bits_and_steps_for_every_value(name):
    check_same_work(watch_work(STEADY[name], 80 if "tiny" not in name else 20))


@pytest.mark.parametrize("name", TRIED)
def test_tries_say_nothing_about_what_is_accepted(name):
    check_independent_work(watch_work(*TRIED[name]))


def test_choices_take_the_same_steps():
    choice = Choice([Fraction(k, 3) for k in range(9)], None)
    check_same_work(watch_work(lambda source: choice.draw(Bits(source)), 100))


def test_permute_and_flip_flips_every_coin(monkeypatch):
    flipped = []
    kept = Bits.less
    monkeypatch.setattr(Bits, "less", lambda *args: flipped.append(1) or kept(*args))
    chosen = set()
    for seed in range(60):
        flipped.clear()
        source = noise.SeededSource(seed)
        chosen.add(noise.permute_and_flip(SCORES, epsilon=1, sensitivity=1, source=source))
        assert len(flipped) == len(SCORES)
    assert len(chosen) > 2


def counted_geometric(source):
    """Twin: adds one for each coin that says yes, until one says no."""
    coins = Bits(source)
    count = 0
    while coins.exponential(1, 4):
        count += 1
    return count


def digit_by_digit(source):
    """Twin: takes bits only until they decide."""
    drawn, numerator = Bits(source), 1
    while True:
        numerator *= 2
        digit = numerator >= 3
        numerator -= 3 * digit
        if drawn.bit() != digit:
            return digit


def no_sign_for_zero(source):
    """Twin: draws the sign only where it matters."""
    drawn = Bits(source)
    magnitude = drawn.geometric(Fraction(1))
    return -magnitude if magnitude and drawn.bit() else magnitude


def stops_at_the_first(source):
    """Twin: runs through the options until the sum is reached."""
    uniform, index = Bits(source).below(8), 0
    while uniform > index:
        index += 1
    return index


def as_many_bits_as_the_bound_has(source):
    """Twin: a number below a bound that was drawn, in as many bits as the bound has."""
    bits = Bits(source)
    return bits.below((1, 7, 10**9)[bits.scaled(3)])


def nothing_for_the_lowest_rung(source):
    """Twin: a ladder that is done when it is on its lowest rung."""
    bits = Bits(source)
    rung = bits.geometric(Fraction(2))
    return bits.scaled(9 * rung) + rung if rung else 0


@pytest.mark.parametrize(
    "twin",
    [
        as_many_bits_as_the_bound_has,
        nothing_for_the_lowest_rung,
        counted_geometric,
        digit_by_digit,
        no_sign_for_zero,
        stops_at_the_first,
    ],
)
def test_variable_work_is_caught(twin):
    seen = watch_work(twin, 300)
    with pytest.raises(AssertionError):
        check_same_work(seen)


def test_tries_that_depend_on_the_value_are_caught():
    with pytest.raises(AssertionError):
        check_independent_work(watch_work(counted_geometric, 300))


# --- kernels ----------------------------------------------------------------------------------


def table_case(scale):
    table, mode = laplace_table(Fraction(scale))
    return table, {"folded": _kernels.FOLDED, "signed": _kernels.SIGNED}[mode]


def words_of(table, count=40):
    """Words for zero, the far tail, both sides of thresholds, ties, and random ones; all signs."""
    floors = table.laws[0].floors(WORD_BITS)
    picked = {
        0,
        2**31 - 1,
        *(f + d for f in floors[:: max(1, len(floors) // 6)] for d in (-1, 0, 1)),
    }
    uniform = np.array(sorted(u for u in picked if 0 <= u < 2**31), dtype=np.uint32)
    random = np.random.default_rng(1).integers(0, 2**31, count, dtype=np.uint32)
    uniform = np.concatenate([uniform, random])
    return np.concatenate([uniform << 1, uniform << 1 | 1])


def kernel_lines(function, table, mode, words):
    """How many lines the kernel runs, as Python, for each of the words by itself."""
    digits = len(table.laws)
    widths = np.array(table.widths)
    found = set()
    for word in words:
        drawn = np.full(digits, word, dtype=np.uint32)
        out, pending = np.zeros(1, dtype=np.int64), np.zeros((2, 2), dtype=np.int64)
        given = drawn, table.floors, table.starts, table.sizes, widths, mode, out, pending
        found.add(work(lambda given=given: function(*given))[1])
    return found


@pytest.mark.parametrize("scale", [Fraction(1, 2), 10, 150, 1000])
def test_the_table_kernel_runs_the_same_lines(scale):
    table, mode = table_case(scale)
    assert len(kernel_lines(_kernels.draw_digits.py_func, table, mode, words_of(table))) == 1


def search_until_found(words, floors, starts, sizes, widths, mode, out, pending):
    """Twin: as tables were searched before, from a guess and on until it is found."""
    made, waiting = 0, 0
    for position in range(words.shape[0]):
        uniform = words[position] >> np.uint32(1)
        index = np.int64(0)
        while floors[index] <= uniform:
            index += 1
        if index > 0 and floors[index - 1] == uniform:
            pending[waiting, 0] = made
            pending[waiting, 1] = position
            waiting += 1
        negative = np.int64(words[position] & np.uint32(1))
        out[made] = (index ^ -negative) + negative
        made += 1
    return made, waiting


def test_a_search_that_ends_when_it_finds_is_caught():
    table, mode = table_case(10)
    assert len(kernel_lines(search_until_found, table, mode, words_of(table))) > 1


def test_the_kernel_of_coins_runs_the_same_lines():
    found = set()
    for byte in range(256):
        for word in (0, 7, 8, 2**63 - 1):
            given = np.array([byte], np.uint8), np.array([word], np.int64), 100, 7
            out = np.zeros(1, np.uint8)
            found.add(work(lambda g=given, o=out: _kernels.flip_coins.py_func(*g, o))[1])
    assert len(found) == 1


def test_the_kernel_of_places_runs_the_same_lines():
    random = np.random.default_rng(1)
    limits = np.array([0, *((1 << 16) % left for left in range(1, 9))])
    found = set()
    for want in range(9):
        words = random.integers(0, 1 << 16, (1, 8))
        out = np.zeros((1, 8), np.uint8)
        given = words, 16, limits, np.array([want]), out
        found.add(work(lambda g=given: xor_kernels.choose_places.py_func(*g))[1])
        assert out[0, 0] > 1 or out.sum() == want
    assert len(found) == 1


def processor_time(function, table, mode, words, rounds=40):
    """The least processor time of one batch, for each of several batches in turn."""
    widths = np.array(table.widths)
    out = np.empty(len(words[0]), dtype=np.int64)
    pending = np.empty((len(words[0]) + 1, 2), dtype=np.int64)
    least = [np.inf] * len(words)
    for _ in range(rounds):
        for place, batch in enumerate(words):
            start = time.thread_time_ns()
            function(batch, table.floors, table.starts, table.sizes, widths, mode, out, pending)
            least[place] = min(least[place], time.thread_time_ns() - start)
    return least


def batches(table, count=1 << 14):
    """Batches of zeros, of the far tail, of middling values, and random ones."""
    digits = len(table.laws)
    random = np.random.default_rng(1).integers(0, 2**32, count * digits, dtype=np.uint32)
    tail = np.full(count * digits, 2**32 - 4, dtype=np.uint32)
    middle = np.full(count * digits, 2**31 + 2, dtype=np.uint32)
    return [np.full(count * digits, 2, dtype=np.uint32), tail, middle, random]


def spread_of_times(function, table, mode):
    """The ratio of the longest to the shortest time; the best of three, since others run too."""
    given = batches(table)
    processor_time(function, table, mode, given, rounds=1)
    ratios = []
    for _ in range(3):
        times = processor_time(function, table, mode, given)
        ratios.append(max(times) / min(times))
    return min(ratios)


@pytest.mark.parametrize("scale", [10, 150, 10**6])
def test_the_kernel_takes_the_same_time(scale):
    assert spread_of_times(_kernels.draw_digits, *table_case(scale)) < 1.3


def test_a_kernel_of_variable_time_is_caught():
    table, mode = table_case(150)
    assert spread_of_times(njit(search_until_found), table, mode) > 2


# --- that bulk draws take the same bits -------------------------------------------------------


def test_ties_take_no_more_bits():
    """A chunk with true ties takes as many bytes as one without, and settles them rightly."""
    table, mode = laplace_table(Fraction(10))
    law = table.laws[0]
    plain = Counting(1)
    table.draw(200, mode, plain)
    for k in (0, 3, 40):
        word = (law.floors(WORD_BITS)[k] << 1).to_bytes(4, "little")
        rest = np.frombuffer(noise.SeededSource(3).read(4 * 197), "<u4").tobytes()
        seen = set()
        for more in (b"\x00" * 64, b"\xff" * 64):
            source = Counting(2, word * 3 + rest + more)
            drawn = table.draw(200, mode, source)
            assert source.taken == plain.taken
            seen.add(int(drawn[0]))
            assert drawn[0] == drawn[1] == drawn[2]
        assert seen == {k, k + 1}


def test_more_ties_than_are_prepared_for_are_settled_too():
    table, mode = laplace_table(Fraction(10))
    word = (table.laws[0].floors(WORD_BITS)[2] << 1).to_bytes(4, "little")
    drawn = table.draw(300, mode, Counting(1, word * 300))
    assert set(drawn.tolist()) == {2, 3}


def spare_words(count):
    """How many words are read for the ties of so many coins."""
    return int(count / 256 + 12 * (count / 256) ** 0.5) + 32


@pytest.mark.parametrize("p", ["1/3", "1/256", "1/1000", "255/256", "1/2", "1", "0"])
def test_coins_take_the_same_bits_and_are_right(p):
    """Coins from known bytes, against fractions; as many bytes whatever they show."""
    exact, count = Fraction(p), 5000
    threshold, rest = divmod(exact.numerator << 8, exact.denominator)
    for seed in range(4):
        source, again = Counting(seed), Counting(seed)
        drawn = noise.bernoulli(p, size=count, source=source)
        assert source.taken == count + 8 * spare_words(count)
        byte = np.frombuffer(again.read(count), np.uint8)
        words = np.frombuffer(again.read(8 * spare_words(count)), "<u8") >> np.uint64(1)
        expected = byte < threshold
        ties = np.flatnonzero(byte == threshold)
        limit = Fraction(rest << 63, exact.denominator)
        expected[ties] = [word < limit for word in words[: len(ties)].tolist()]
        assert drawn.tolist() == expected.tolist()


def test_coins_of_one_byte_each_have_the_law():
    """All first bytes, with words on both sides of the rest: exact on a grid of chances."""
    for numerator in range(0, 257, 16):
        p = Fraction(numerator, 256) + (Fraction(1, 512) if numerator < 256 else 0)
        first = np.repeat(np.arange(256, dtype=np.uint8), 2)
        out = np.zeros(512, np.uint8)
        threshold, rest = divmod(int(p * 2**71), 2**63)
        words = np.array([0, 2**62, 2**62 - 1, 2**63 - 1])
        _kernels.flip_coins(first, np.resize(words, 512), threshold, rest, out)
        assert Fraction(int((out == 1).sum()), 512) == p


def test_coins_that_tie_twice_are_settled():
    """With all bits of a byte and a word equal to those of p, further bits decide."""
    p = Fraction(1, 3)

    def floor(known):
        return (p.numerator << known) // p.denominator, False

    count = _FEW_COINS + 1
    byte = floor(8)[0]
    word = (floor(71)[0] - (byte << 63)) << 1
    rounds = -(-count // spare_words(count))  # far more ties than words are read for at first
    words = word.to_bytes(8, "little") * (rounds * spare_words(count))
    drawn = fixed_coins(floor, count, Counting(1, bytes([byte]) * count + words))
    assert 0 < drawn.sum() < count
    # What is left of 2**71 / 3 after its floor is two thirds.
    assert (1 << 71) % 3 == 2
    assert abs(drawn.mean() - 2 / 3) < 5 * np.sqrt(2 / 9 / count)


def test_responses_and_subsets_take_bits_by_their_number_alone():
    for count in (100, 5000):
        taken = set()
        for seed in range(4):
            source = Counting(seed)
            response_bits(3, count, source)
            taken.add(source.taken)
        assert len(taken) == 1
    taken = set()
    for size in range(9):
        source = Counting(7)
        uniform_subsets(np.full(64, size), 8, source)
        taken.add(source.taken)
    assert len(taken) == 1


def test_ranks_are_those_of_a_search():
    random = np.random.default_rng(1)
    for size in (1, 2, 3, 7, 8, 9, 100):
        limits = np.sort(random.integers(0, 50, size))
        values = random.integers(-1, 52, 300)
        assert ranks(limits, values).tolist() == np.searchsorted(limits, values, "right").tolist()


# --- the digits of a geometric variable -------------------------------------------------------


@pytest.mark.parametrize("scale", [Fraction(1, 9), Fraction(1), Fraction(10), Fraction(10**9, 7)])
def test_digits_of_their_own_make_the_law(scale):
    """The product of the coins' probabilities is the closed form, at the real reach."""
    exponents = coin_exponents(scale)
    chances = [Fraction(coin_floor(x, 256)[0], 2**256) for x in exponents]
    assert 2 ** (len(exponents) - 1) >= bits.REACH * scale
    spread = int(scale)
    for k in (0, 1, 2, 3, 7, spread, 3 * spread + 1, 20 * spread + 5):
        product = 1 - chances[-1]
        for place, chance in enumerate(chances[:-1]):
            product *= chance if k >> place & 1 else 1 - chance
        if k < 2 ** (len(exponents) - 1):
            assert abs(product - geometric_mass(k, scale)) < Fraction(1, 2**200)
    assert abs(chances[-1] - exp(exponents[-1])) < Fraction(1, 2**250)
    wrong = [Fraction(coin_floor(x * Fraction(11, 10), 256)[0], 2**256) for x in exponents[:-1]]
    product = Fraction(1)
    for chance in wrong:
        product *= 1 - chance
    assert abs(product - geometric_mass(0, scale)) > Fraction(1, 2**200)


def test_a_coin_that_ties_takes_more_bits():
    scale = Fraction(3)
    thresholds = coin_thresholds(scale)
    for place in (0, 3, len(thresholds) - 1):
        words = [2**128 - 1] * len(thresholds)
        words[place] = thresholds[place]
        said = b"".join(word.to_bytes(16, "little") for word in words)
        below, above = (
            noise.geometric(scale=scale, source=Counting(1, said + more * 16))
            for more in (b"\x00", b"\xff")
        )
        assert above == 0
        if place < len(thresholds) - 1:
            assert below == 1 << place
        else:
            # Something is left: a geometric variable beyond all digits.
            assert below >= 1 << place


def test_large_scales_take_bounded_work():
    for scale in (10**6, 10**100, Fraction(1, 10**100)):
        source = Counting()
        noise.geometric(scale=scale, source=source)
        assert source.taken <= 16 * (max(0, Fraction(scale).numerator.bit_length()) + 9)
