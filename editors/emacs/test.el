;;; test.el --- Drives a real Emacs with Eglot  -*- lexical-binding: t; -*-

;;; Commentary:

;; Opens a file, sees the diagnostic, applies the fix, completes, renames, formats, runs tests.
;;
;;     QOQI="path/to/python -m qoqi.runtime.cli.main" emacs -Q --batch -l test.el
;;
;; Prints `ok NAME' for each part, and ends with 0 if all went well.

;;; Code:

(require 'package)
;; Where Debian puts packages, eglot among them; from Emacs 29 on it is part of Emacs.
(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa")
(package-initialize)
(add-to-list 'load-path (file-name-directory load-file-name))
(require 'flow-mode)
(require 'flymake)

(setq flow-command (split-string (or (getenv "QOQI") "qoqi"))
      eglot-sync-connect 20
      eglot-confirm-server-initiated-edits nil
      eglot-autoshutdown t
      make-backup-files nil
      create-lockfiles nil)

(defun ok (name) (princ (format "ok %s\n" name)))

(defun wait-for (name check)
  "Wait until CHECK gives something; NAME is what for."
  (let ((end (+ (float-time) 20)) found)
    (while (and (not (setq found (funcall check))) (< (float-time) end))
      (accept-process-output nil 0.05))
    (unless found
      (princ (buffer-string))
      (error "No %s" name))
    (ok name)
    found))

(defun line (number)
  (save-excursion
    (goto-char (point-min))
    (forward-line (1- number))
    (buffer-substring-no-properties (line-beginning-position) (line-end-position))))

(defun to (text)
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0)))

(let* ((folder (file-name-as-directory (make-temp-file "flow" t)))
       (path (expand-file-name "shop.flow" folder)))
  (write-region "name = \"shop\"\n" nil (expand-file-name "flow.toml" folder) nil 'quiet)
  (let ((coding-system-for-write 'utf-8))
    (write-region (concat "struct Order { id: String, cents: Int }\n\n"
                          "fn total(order: Order) -> Int {\n"
                          "    print(\"😀 \\(ordr.cents)\")\n"
                          "    return   order.cents\n"
                          "}\n\n"
                          "test \"an order has a total\" {\n"
                          "    assert(total(Order { id: \"a\", cents: 5 }) == 5)\n"
                          "}\n\n"
                          "test \"nothing costs \\\"nothing\\\"\" {\n"
                          "    assert(total(Order { id: \"b\", cents: 0 }) == 1)\n"
                          "}\n")
                  nil path nil 'quiet))
  (find-file path)
  (unless (eq major-mode 'flow-mode) (error "The mode is %s" major-mode))
  (apply #'eglot (eglot--guess-contact))
  (wait-for "client" #'eglot-current-server)
  (flymake-mode 1)
  (flymake-start)
  (let ((found (wait-for "diagnostic" #'flymake-diagnostics)))
    (unless (equal (buffer-substring (flymake-diagnostic-beg (car found))
                                     (flymake-diagnostic-end (car found)))
                   "ordr")
      (error "The diagnostic is elsewhere"))
    (unless (string-match-p "there is no `ordr` here" (flymake-diagnostic-text (car found)))
      (error "The diagnostic says %s" (flymake-diagnostic-text (car found)))))

  (to "ordr")
  (let* ((actions (jsonrpc-request
                   (eglot--current-server-or-lose) :textDocument/codeAction
                   (list :textDocument (eglot--TextDocumentIdentifier)
                         :range (list :start (eglot--pos-to-lsp-position)
                                      :end (eglot--pos-to-lsp-position))
                         :context (list :diagnostics [] :only ["quickfix"]))))
         (edit (plist-get (aref actions 0) :edit)))
    (eglot--apply-workspace-edit edit))
  (wait-for "fix" (lambda () (equal (line 4) "    print(\"😀 \\(order.cents)\")")))
  ;; Without a person Emacs is never idle, and Eglot tells of changes when it is.
  (eglot--signal-textDocument/didChange)
  (wait-for "no diagnostic after the fix"
            (lambda () (accept-process-output nil 0.2) (null (flymake-diagnostics))))

  (goto-char (point-min))
  (forward-line 4)
  (insert "    print(order.)\n")
  (forward-line -1)
  (search-forward "order.")
  (eglot--signal-textDocument/didChange)
  (let* ((capf (eglot-completion-at-point))
         (names (all-completions "" (nth 2 capf))))
    (unless (and (member "cents" names) (member "id" names))
      (error "Completion offers %s" names))
    (ok "completion"))
  (delete-region (line-beginning-position) (line-beginning-position 2))
  (eglot--signal-textDocument/didChange)

  (to "order: Order)")
  (eglot-rename "purchase")
  (wait-for "rename" (lambda () (and (equal (line 3) "fn total(purchase: Order) -> Int {")
                                     (equal (line 5) "    return   purchase.cents"))))
  (eglot-format-buffer)
  (wait-for "format" (lambda () (equal (line 5) "    return purchase.cents")))

  (to "purchase: Order")
  (let ((hover (jsonrpc-request (eglot--current-server-or-lose) :textDocument/hover
                                (eglot--TextDocumentPositionParams))))
    (unless (string-match-p "purchase" (plist-get (plist-get hover :contents) :value))
      (error "Hover shows %s" hover))
    (ok "hover"))
  (forward-line 1)
  (indent-region (point-min) (point-max))
  (unless (equal (line 5) "    return purchase.cents") (error "Indented to %s" (line 5)))
  (ok "indent")

  (defun tested (command)
    "What the buffer of the tests says in the end, after COMMAND."
    (let ((output (save-window-excursion (call-interactively command)
                                         (get-buffer "*flow-test*"))))
      (wait-for (symbol-name command)
                (lambda () (not (process-live-p (get-buffer-process output)))))
      (with-current-buffer output (buffer-string))))
  (to "assert(total(Order { id: \"b\"")
  (let ((said (tested #'flow-test-at-point)))
    (unless (string-match-p "0 passed, 1 failed" said) (error "One test says %s" said)))
  (let ((said (tested #'flow-test-file)))
    (unless (string-match-p "1 passed, 1 failed" said) (error "All tests say %s" said)))
  (with-current-buffer "*flow-test*"
    (goto-char (point-min))
    (let ((inhibit-message t)) (compilation-next-error 1))
    (unless (looking-at-p " *shop.flow:13$")
      (error "What failed is at %s" (thing-at-point 'line))))
  (ok "place of what failed")
  (set-buffer-modified-p nil)
  (eglot-shutdown (eglot-current-server))
  (kill-emacs 0))
;;; test.el ends here
