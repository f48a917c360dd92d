"""refused_by_transformers.py DIRECTORY: ends with 0 where transformers opens no model there and says that config.json is missing."""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import transformers

try:
    transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1])
except (OSError, ValueError) as error:
    print(error)
    sys.exit(0 if "config.json" in str(error) else 1)
sys.exit("transformers opens it")
