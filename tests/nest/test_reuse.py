"""What steps use again, and which of it registers keep."""

from __future__ import annotations

from nanoloom.nest.register_residency import residency
from nanoloom.nest.reuse import Link, kept_in_registers, links
from nanoloom.nest.taps import Tap, Window

ROW = [(0,), (1,), (2,)]  # a window of three that moves by one
# image[s*x + r], weights[r], made[x]: dimensions x and r
FACTORS = (((1,), (1,)), ((0,), (1,)), ((1,), (0,)))


def window(anchor: int, stride: int = 1) -> Window:
    image = (stride,), (1,)
    return Window(anchor, (0,), (1,), (image, *FACTORS[1:]))


def test_a_moving_window_uses_all_but_one_again() -> None:
    assert links(ROW, (1,)) == [Link(1, 0, True), Link(2, 1, True)]


def test_what_does_not_move_is_used_in_every_step() -> None:
    assert links(ROW, (0,)) == [Link(n, n, True) for n in range(3)]


def test_a_stride_leaves_less() -> None:
    assert links(ROW, (2,)) == [Link(2, 0, True)]
    assert links(ROW, (3,)) == []


def test_a_number_that_is_used_twice_in_a_step() -> None:
    assert links([(0,), (0,), (1,)], (5,)) == [Link(0, 1, False)]


def test_each_register_keeps_one_number_at_a_time() -> None:
    for count in range(4):
        assert len(kept_in_registers(ROW, (1,), count)) == min(count, 2)
        assert len(kept_in_registers(ROW, (0,), count)) == count


def test_a_register_serves_again_where_a_use_ends() -> None:
    """Both uses of one number, one behind the other."""
    assert len(kept_in_registers([(0,), (0,), (0,)], (1,), 1)) == 2


def test_the_taps_of_an_input_that_stays_lie_behind_its_step() -> None:
    assert window(0).taps([3]) == [Tap((n,), (-n,)) for n in range(3)]
    assert window(2).taps([3]) == [Tap((n,), (0,)) for n in range(3)]


def test_a_stride_has_several_inputs_in_a_step() -> None:
    made = window(0, 2)
    assert [made.delays((n,)) for n in range(3)] == [((0, 0),), ((0, 1),), ((1, 0),)]
    ordered = made.in_order(made.taps([3]))
    assert [tap.sums for tap in ordered] == [(2,), (0,), (1,)]


def test_an_operand_without_points_stays_still() -> None:
    assert window(1).stays_still
    assert not window(0).stays_still
    assert not window(2).stays_still


def test_the_first_results_stay_while_a_weight_does() -> None:
    found = residency(window(1), [3], [20], {2: 4})
    assert found.extents == (4,)
    assert found.keys == {(2, (n,)): 3 for n in range(4)}


def test_the_inputs_that_are_used_most_often_stay() -> None:
    found = residency(window(1), [3], [20], {0: 2})
    assert found.keys == {(0, (2,)): 3, (0, (3,)): 3}
    assert found.extents == (4,)
