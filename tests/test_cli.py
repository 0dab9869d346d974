"""The command line as a user meets it: in its own process."""

import json
import subprocess
import sys

import pytest
import xarray as xr

import onegrad as og
from onegrad.cli import main

SMALL = ["--dimension", "40", "--width", "30", "--samples", "35", "--trials", "2"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onegrad.cli", *arguments], capture_output=True, text=True, check=False
    )


def test_version_and_help():
    assert run("--version").stdout.strip() == og.__version__
    assert "simulate" in run("--help").stdout


def test_help_does_not_import_jax():
    code = (
        "import sys; from onegrad.cli import main; main(['simulate', '--help']); print('jax' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip().endswith("False")


def test_simulate_prints_a_table_and_names_the_device():
    found = run("simulate", *SMALL)
    assert found.returncode == 0, found.stderr
    assert found.stderr.splitlines()[0].startswith("device: ")
    for word in ("network", "hermite", "conditional", "test_error", "±", "2 trials"):
        assert word in found.stdout


def test_json_and_netcdf_hold_the_same_numbers(tmp_path):
    path = tmp_path / "results.nc"
    found = run("simulate", *SMALL, "--target", "labels", "--json", "--out", str(path))
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    data = xr.load_dataset(path, engine="h5netcdf")
    assert set(document) == {"problem", "settings", "trials", "models"}
    for model, errors in document["models"].items():
        for name, pair in errors.items():
            assert pair["mean"] == float(data[name].sel(model=model).mean())
            assert pair["sem"] > 0
    assert "misclassification" in document["models"]["network"]
    again = og.Problem.from_json(json.dumps(document["problem"]))
    ours = og.simulate(again, 2)
    assert float(ours.test_error[0, 0]) == float(data.test_error[0, 0])


def test_one_trial_has_a_null_standard_error():
    found = run("simulate", *SMALL[:-1], "1", "--json", "--models", "network")
    assert json.loads(found.stdout)["models"]["network"]["test_error"]["sem"] is None


def test_flags_override_the_file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text("dimension = 40\nwidth = 30\nsamples = 35\nactivation = 'erf'\ndegree = 2\n")
    found = run("simulate", str(path), "--activation", "tanh", "--trials", "1", "--json")
    document = json.loads(found.stdout)
    assert document["problem"]["activation"] == "tanh"
    assert document["problem"]["width"] == 30
    assert document["settings"]["degree"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--ridge", "-1"], 2, "ridge must be > 0, got -1.0"),
        (["--ridge", "nan"], 2, "ridge must be > 0, got nan"),
        (["--width", "0"], 2, "width must be an integer ≥ 1, got 0"),
        (["--width", "3.5"], 2, "--width: must be an integer, got '3.5'"),
        (["--trials", "0"], 2, "trials must be an integer ≥ 1, got 0"),
        (["--activation", "rellu"], 2, 'did you mean "relu"'),
        (["--alpha", "2"], 2, "alpha must be in [0, 1], got 2.0"),
        (["--alignment", "1.5"], 2, "alignment must be in [-1, 1], got 1.5"),
        (["--weights", "0.5,x"], 2, "weights must be numbers separated by commas"),
        (["--weights", "0.5,0.7"], 2, "weights must sum to 1"),
        (["--strengths", "-3", "--learning-rate", "1"], 2, "must be ≥ 0, got -3.0"),
        (["--wdth", "3"], 2, "--wdth"),
        (["absent.toml"], 2, "cannot read absent.toml"),
        (["--models", "network,hermit"], 2, 'did you mean "hermite"'),
        (["--out", "results.csv"], 2, "out must be a file that ends in .nc"),
        (["--out", "no/such/folder/a.nc"], 2, "existing folder"),
        (["--models", ""], 2, "models must be one of"),
        (["--rank", "1000000"], 2, "dimension must be ≥ 2000000"),
        (["--weights=-0.5,1.5"], 2, "weights[0] must be in [0, 1], got -0.5"),
        (["--width", "10000000", "--test-samples", "10"], 5, "largest width that fits"),
        (
            ["--activation", "square", "--learning-rate", "1e160", "--strengths", "1"],
            3,
            "did not reach its optimum",
        ),
    ],
    ids=str,
)
def test_bad_input_is_one_line_and_a_code(arguments, code, message, capsys):
    trials = [] if "--trials" in arguments else ["--trials", "1"]
    assert main(["simulate", *arguments, *trials]) == code
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    complaints = [line for line in printed.err.splitlines() if not line.startswith("device: ")]
    assert len(complaints) == 1, printed.err


def test_a_refusal_is_the_exit_code_of_the_process():
    found = run("simulate", "--ridge", "0")
    assert found.returncode == 2
    assert found.stderr == "onegrad: ridge must be > 0, got 0.0\n"


def test_unknown_commands_are_refused():
    found = run("simulat")
    assert found.returncode == 2
    assert "simulat" in found.stderr


def test_doctor_examines_itself():
    found = run("doctor", "--json")
    assert found.returncode == 0, found.stdout
    report = json.loads(found.stdout)
    assert report["healthy"] is True
    assert report["gemm_gigaflops"] > 0
    assert "ok    float64 products" in run("doctor").stdout
