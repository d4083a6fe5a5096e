// A batch file is refused with a sentence, or fits the step that is made for it: whole sequences, ids of the vocabulary, a token
// that counts. The first byte chooses the model's architecture; the rest is the file.
#include "models/step/batch_file.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const bool encoder = data[0] % 2 == 0;
  Recipe recipe;
  recipe.model.architecture = encoder ? Architecture::encoder_decoder : Architecture::decoder_only;
  recipe.model.vocabulary = 61;
  recipe.model.max_positions = 16;
  const std::filesystem::path path = file_of(data + 1, bytes - 1);
  read_or_refuse([&] {
    const StoredBatches files = read_batch_files(path, recipe.model);
    const BatchConfig rows = recipe_of_step(recipe, files).batch;
    for (const BatchFile& file : files.batches) {
      const Batch batch = pack(file, {.source_rows = rows.source_tokens, .target_rows = rows.target_tokens, .sequence = rows.sequence});
      must(batch.real_tokens > 0, "a token that counts");
      must(batch.target_lengths.size() == file.target_lengths.size(), "every sequence of the file");
      must(batch.source_ids.empty() == !encoder, "a source where there is an encoder");
      for (const auto* ids : {&batch.source_ids, &batch.target_in, &batch.target_out}) {
        for (const std::int32_t id : *ids) must(id < recipe.model.vocabulary, "an id of the vocabulary");
      }
    }
  });
  return 0;
}
