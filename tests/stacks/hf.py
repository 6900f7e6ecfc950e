"""A small language model with Hugging Face's Trainer, as its examples are: all of TrainingArguments are options."""
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint


class Text(torch.utils.data.Dataset):
    """Sequences that count up from a random start, modulo 16."""

    def __len__(self):
        return 512

    def __getitem__(self, index):
        begin = torch.randint(16, (1,), generator=torch.Generator().manual_seed(index))
        tokens = (begin + torch.arange(12)) % 16
        return {"input_ids": tokens, "labels": tokens}


arguments, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
torch.set_num_threads(1)
set_seed(arguments.seed)
model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=12, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))
trainer = Trainer(model=model, args=arguments, train_dataset=Text())
trainer.train(resume_from_checkpoint=get_last_checkpoint(arguments.output_dir))
sys.exit(0)
