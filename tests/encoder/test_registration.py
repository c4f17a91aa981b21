"""`import ctxsim_hf` makes Auto classes open our models, whichever of the two is imported first."""

import subprocess
import sys

import pytest

SHOW = """
import sys
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, BertConfig, RobertaConfig
small = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
config = AutoConfig.for_model("ctxsim_light_generator", vocab_size=9)
print(type(config).__name__, type(AutoModel.from_config(config)).__name__)
for config in (BertConfig, RobertaConfig):
    for architectures in (None, ["SurrogateModel"]):
        print(type(AutoModel.from_config(config(**small, architectures=architectures))).__name__)
for architectures in (None, ["CrossSurrogateModel"]):
    config = RobertaConfig(**small, architectures=architectures)
    print(type(AutoModelForSequenceClassification.from_config(config)).__name__)
"""
OPENED = [
    "LightContextGeneratorConfig LightContextGeneratorModel",
    *("BertModel", "SurrogateModel", "RobertaModel", "SurrogateModel"),
    *("RobertaForSequenceClassification", "CrossSurrogateModel"),
]


@pytest.mark.parametrize(
    "imports",
    [
        "sys.argv[0] = 'ctxsim'\nimport ctxsim_hf\nassert not {'torch', 'transformers'} & set(sys.modules)",
        "import ctxsim_hf\nfrom transformers import AutoConfig\nAutoConfig.for_model('ctxsim_discriminator')",
        "from transformers import AutoModel, RobertaConfig\nimport ctxsim_hf",
        "from ctxsim_hf import LightContextGeneratorConfig",
        "from ctxsim_hf import LightContextGeneratorModel, SurrogateModel",
    ],
)
def test_in_any_order(imports: str) -> None:
    command = [sys.executable, "-c", f"import sys\n{imports}\n{SHOW}"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == OPENED
