# tilewave in a container, for the CPU and for NVIDIA GPUs. Every package comes from the image's own distribution.
#   docker build --target cpu -t tilewave .           docker run --rm -v "$PWD:/runs" -w /runs tilewave train RECIPE
#   docker build --target cuda -t tilewave:cuda .     docker run --rm --gpus all -v "$PWD:/runs" -w /runs tilewave:cuda train RECIPE
ARG DEBIAN=debian:12-slim
ARG CUDA_BUILD=nvidia/cuda:13.0.1-devel-ubuntu24.04
ARG CUDA_RUN=nvidia/cuda:13.0.1-base-ubuntu24.04

FROM ${DEBIAN} AS cpu-build
COPY cmake/packages.txt tilewave /src/
RUN mkdir /src/cmake && mv /src/packages.txt /src/cmake/ \
 && apt-get update && apt-get install -y --no-install-recommends $(/src/tilewave packages) \
 && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN cmake --preset cpu -S /src -D TILEWAVE_TESTS=OFF && cmake --build /src/build && cmake --install /src/build --prefix /opt/tilewave
# What the program links is installed, and nothing else, where it runs.
RUN ldd /opt/tilewave/bin/tilewave | awk '$2 == "=>" && $3 ~ "^/" && $3 !~ "^/opt" {print $3}' | xargs realpath | xargs dpkg-query -S \
 | cut -d: -f1 | sort -u >/opt/tilewave/packages

FROM ${DEBIAN} AS cpu
COPY --from=cpu-build /opt/tilewave /opt/tilewave
RUN apt-get update && apt-get install -y --no-install-recommends $(cat /opt/tilewave/packages) python3-matplotlib \
 && rm -rf /var/lib/apt/lists/*
COPY --from=cpu-build /src/recipes /opt/tilewave/share/tilewave/recipes
ENV PATH=/opt/tilewave/bin:$PATH
RUN useradd --create-home tilewave
USER tilewave
ENTRYPOINT ["tilewave"]
CMD ["--help"]

FROM ${CUDA_BUILD} AS cuda-build
COPY cmake/packages.txt tilewave /src/
RUN mkdir /src/cmake && mv /src/packages.txt /src/cmake/ \
 && apt-get update && apt-get install -y --no-install-recommends $(/src/tilewave packages) \
 && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN cmake --preset cuda -S /src -D TILEWAVE_TESTS=OFF && cmake --build /src/build && cmake --install /src/build --prefix /opt/tilewave
# What the program links is installed, and nothing else, where it runs.
RUN ldd /opt/tilewave/bin/tilewave | awk '$2 == "=>" && $3 ~ "^/" && $3 !~ "^/opt" {print $3}' | xargs realpath | xargs dpkg-query -S \
 | cut -d: -f1 | sort -u >/opt/tilewave/packages

FROM ${CUDA_RUN} AS cuda
COPY --from=cuda-build /opt/tilewave /opt/tilewave
RUN apt-get update && apt-get install -y --no-install-recommends $(cat /opt/tilewave/packages) python3-matplotlib \
 && rm -rf /var/lib/apt/lists/*
COPY --from=cuda-build /src/recipes /opt/tilewave/share/tilewave/recipes
ENV PATH=/opt/tilewave/bin:$PATH
RUN useradd --create-home tilewave
USER tilewave
ENTRYPOINT ["tilewave"]
CMD ["--help"]
