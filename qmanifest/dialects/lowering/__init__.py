"""From a document to the manifest: lines that name modules, weights as stored."""
