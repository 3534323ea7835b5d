from auxrnn.bench.timing import time_side_by_side


class Machine:
    """A clock that only work moves, and contenders whose work takes the seconds written down for each round."""

    def __init__(self, **seconds):
        self.now = 0.0
        self.turns = []
        self.seconds = {name: iter(values) for name, values in seconds.items()}

    def clock(self):
        return self.now

    def contender(self, name):
        def work():
            self.turns.append(name)
            self.now += next(self.seconds[name])

        return work


def test_contenders_take_turns_and_the_best_round_of_each_counts():
    machine = Machine(ours=[9.0, 1.0, 2.0], theirs=[4.0, 6.0, 3.0])
    contenders = {name: machine.contender(name) for name in ("ours", "theirs")}
    least = time_side_by_side(contenders, rounds=3, clock=machine.clock)
    assert least == {"ours": 1.0, "theirs": 3.0}
    assert machine.turns == ["ours", "theirs"] * 3
