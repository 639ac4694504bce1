# Builds one function: the files of its folder. Each functions/<name>/Makefile includes this; SAM runs it from the root.
folder := $(dir $(firstword $(MAKEFILE_LIST)))

build-%Function:
	cp -R $(folder). $(ARTIFACTS_DIR)
	find $(ARTIFACTS_DIR) -type d -name __pycache__ -prune -exec rm -rf {} +
	rm $(ARTIFACTS_DIR)/Makefile
