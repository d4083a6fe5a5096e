// What other frameworks call our keys and their values: the names of Hugging Face's Trainer and config.json, PyTorch, fairseq, Marian,
// OpenNMT-py, Megatron, nanoGPT, llm.c, torchtitan, Lightning and tensor2tensor, each with our key and, where it counts something else
// or tilewave has no such thing, a sentence. The reader's errors quote them; nothing is translated silently.
#pragma once

#include "framework/recipe/nearest.h"

namespace tilewave {

const ForeignNames& foreign_names();

}  // namespace tilewave
