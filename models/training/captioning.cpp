#include "models/training/captioning.h"

#include <utility>

#include "framework/io/run_folder.h"
#include "models/decoding/decode.h"
#include "models/decoding/trained_model.h"
#include "models/training/picture_files.h"

namespace tilewave {

Captioning caption_files(const CaptioningRequest& request) {
  const std::string run = request.run.string();
  TW_CHECK_INPUT(is_there(request.run / "recipe.toml"), run,
                 ": there is no recipe.toml, so this is no run folder; name one that ./tilewave train has made.");
  const Recipe recipe = read_recipe(request.run / "recipe.toml");
  TW_CHECK_INPUT(captions(recipe.model), run, ": the run's model ",
                 classifies(recipe.model) ? "tells pictures apart and writes nothing; use tilewave classify."
                                          : "reads tokens and sees no pictures; name a run of data.kind = \"captions\".");
  NamedPictures read = read_picture_files(request.files, pictures_of(recipe).value().shape);

  TrainedModel trained = open_trained_model(request.run, request.queue, request.device);
  Captioning result{.step = trained.step, .pictures = {}, .notes = std::move(trained.notes)};
  const auto count = std::ssize(read.names);
  if (count == 0) return result;
  PictureBatches batches(picture_set(std::move(read.stored)), 1, {});
  std::vector<std::vector<std::uint8_t>> pixels;
  while (std::optional<PictureBatch> one = batches.next()) pixels.push_back(std::move(one->pixels));
  const Tokenizer& tokenizer = trained.tokenizer.value();
  const std::vector<std::vector<std::int32_t>> ids = caption(
      *trained.model, pixels,
      {.beams = request.beams, .drawn = target_ids(tokenizer), .vocabulary = tokenizer.vocabulary(), .positions = recipe.batch.sequence});
  for (std::size_t i = 0; i < ids.size(); ++i) result.pictures.push_back({.name = read.names[i], .caption = tokenizer.decode(ids[i])});
  return result;
}

}  // namespace tilewave
