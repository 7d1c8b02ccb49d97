"""The model seam, its assembler and its adapters."""
