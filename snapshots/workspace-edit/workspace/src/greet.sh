#!/usr/bin/env bash
# says hello
echo 'Hello, Mars!'
