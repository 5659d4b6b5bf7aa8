"""ED-Batch's nine workloads as one writes them in PyTorch (the extra `bench`), most of them batched by hand."""
