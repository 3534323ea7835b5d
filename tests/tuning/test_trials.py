"""The curve of a trial, and when it is given up."""

from auxrnn.tuning.trials import count_steps, find_curve, is_hopeless, read_result


def score(step, accuracy, event="evaluation"):
    return {"event": event, "step": step, "validation_accuracy": accuracy}


def test_a_curve_holds_the_best_so_far_by_tenths_of_the_training_with_labels(tmp_path):
    assert count_steps(tmp_path) is None
    events = [{"event": "train", "step": 1}, {"event": "evaluation", "step": 5, "validation_auxiliary_loss": 0.3}]
    assert find_curve(events, 10) == {}
    events.append(score(0, 9.0))
    assert find_curve(events, 10) == {}
    events += [score(2, 30.0), score(4, 20.0)]
    assert find_curve(events, 10) == {1: 9.0, 2: 30.0, 3: 30.0, 4: 30.0}
    assert find_curve(events, 20) == {1: 30.0, 2: 30.0}
    assert find_curve(events, None) == {}
    events += [score(10, 50.0), score(10, 50.0, "result") | {"validation_loss": 0.5}]
    curve = find_curve(events, 10)
    assert curve[10] == 50.0
    assert read_result(events, curve)[:4] == ("complete", curve, 50.0, 0.5)
    assert read_result(events, curve).test_accuracy is None


def test_only_what_is_worse_than_most_finished_trials_is_given_up():
    rivals = [{tenth: base + tenth for tenth in range(1, 11)} for base in (10, 20, 30, 40, 50)]
    bad, good = dict.fromkeys(range(1, 5), 25.0), dict.fromkeys(range(1, 5), 45.0)
    assert is_hopeless(bad, rivals)
    assert not is_hopeless(good, rivals)
    assert not is_hopeless(bad, rivals[:3]), "three trials are too few to know"
    assert not is_hopeless({1: 0.0, 2: 0.0}, rivals), "it has hardly begun"
