"""Problems as TOML: one vocabulary, unknown and conflicting keys refused."""

import pytest

import onegrad as og
from onegrad.keys import from_keys
from problems import paper

GENERAL = """
activation = "erf"
width = 600
samples = 800
learning_rate = 40.0
ridge = 1e-3
[mixture]
dimension = 400
[[mixture.components]]
weight = 0.7
mean = [2.0, 0.0, 0.0]
strengths = [15.0]
directions = [[0.0, 1.0, 0.0]]
[[mixture.components]]
weight = 0.3
mean = [-3.0, 0.0, 1.0]
[target]
kind = "single-index"
link = "tanh"
direction = [0.0, 0.3, 1.0]
noise = 0.2
"""


def read(tmp_path, text: str, name: str = "problem.toml"):
    path = tmp_path / name
    path.write_text(text)
    return og.read_problem(path)


def test_a_general_problem(tmp_path):
    problem, degree = read(tmp_path, GENERAL)
    assert degree is None
    assert problem == og.Problem(
        og.Mixture(
            400,
            [
                og.Component(weight=0.7, mean=[2, 0, 0], strengths=[15.0], directions=[[0, 1, 0]]),
                og.Component(weight=0.3, mean=[-3, 0, 1]),
            ],
        ),
        target=og.SingleIndex(link="tanh", direction=[0, 0.3, 1], noise=0.2),
        activation="erf",
        width=600,
        samples=800,
        learning_rate=40.0,
        ridge=1e-3,
    )


def test_json_is_read_back(tmp_path):
    problem, _ = read(tmp_path, GENERAL)
    assert read(tmp_path, problem.to_json(), "problem.json").problem == problem


def test_flat_keys_are_the_papers(tmp_path):
    problem, degree = read(tmp_path, "dimension = 500\nwidth = 500\nsamples = 500\ndegree = 2")
    assert (problem, degree) == (paper(500), 2)
    assert from_keys({}).problem == paper(1000)


def test_flat_alternatives():
    keys = {"learning_rate": 3, "strengths": [9, 4], "weights": [0.2, 0.8], "alignment": 0.5}
    mixture = from_keys(keys).problem.mixture
    assert mixture == og.Mixture.spiked(1000, [[9, 4], [9, 4]], [0.2, 0.8], 0.5)
    nested = from_keys({"learning_rate": 3, "strengths": [[9], [4, 2]]}).problem.mixture
    assert nested == og.Mixture.spiked(1000, [[9], [4, 2]], [0.5, 0.5])
    labels = from_keys({"target": "labels", "rank": 3}).problem
    assert labels.target == og.ComponentLabels([1, -1])
    assert labels.signal_dimension == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("widht = 3", 'unknown key "widht" .*did you mean "width"'),
        ("width = ", "is not valid TOML"),
        ('width = "3"', "width must be an integer ≥ 1, got '3'"),
        ("alpha = 0.5\nlearning_rate = 2.0", '"alpha" and "learning_rate" exclude each other'),
        ("learning_rate = 2.0", '"learning_rate" needs the key "strengths"'),
        ("learning_rate = 2\nstrengths = [1]\nrank = 2", '"rank" and "strengths" exclude'),
        (
            "strengths = 3\nlearning_rate = 1",
            "strengths must be a list of numbers, or one list a component, got 3",
        ),
        ("weights = [0.5, 0.6]", "weights must sum to 1"),
        ("alpha = 1.5", r"alpha must be in \[0, 1\], got 1.5"),
        ('target = "labls"', "target must be one of"),
        ("target = 3", "target must be a name, got 3"),
        ('target = "labels"\nnoise = 0.1', "noise must be 0 with target = labels"),
        ('target = "labels"\nweights = [0.5, 0.3, 0.2]', "for two components, got 3"),
        ('activation = "thanh"', 'did you mean "tanh"'),
        (GENERAL.replace("width = 600", "width = 600\ndimension = 4"), r'"dimension" and a \[mixture\]'),
        (GENERAL.replace("learning_rate = 40.0", ""), 'needs the key "learning_rate"'),
        (GENERAL.replace("width = 600", "width = 600\nnoise = 0.1"), "belongs inside"),
        (GENERAL.replace('"single-index"', '"single"'), 'kind must be one of .*"single-index"'),
        (GENERAL.replace("strengths", "strength"), r'unknown key "strength" in components\[0\].*"strengths"'),
        ("[mixture]\ndimension = 3\n", 'needs the key "learning_rate"'),
        ("learning_rate = 1\n[mixture]\ndimension = 3\n", 'mixture needs the key "components"'),
        ("degree = 0", "degree must be an integer ≥ 1"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    with pytest.raises(og.InputError, match=message):
        read(tmp_path, text)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(og.InputError, match=r"cannot read .*No such file"):
        og.read_problem(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(og.InputError, match="not UTF-8"):
        og.read_problem(tmp_path / "binary.toml")
    with pytest.raises(og.InputError, match="is not valid JSON"):
        read(tmp_path, "{", "broken.json")
    with pytest.raises(og.InputError, match="must hold a table of keys, got list"):
        read(tmp_path, "[]", "list.json")
