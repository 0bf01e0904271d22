// The types of lib.js, from the packages that are vendored. Read by the type
// check alone; it is not part of what ships.
export { h, render, Fragment } from 'preact';
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from '@preact/signals';
export type { Signal } from '@preact/signals';

/** A template gives whatever can stand in a page: an element, several, or text. */
export declare function html(strings: TemplateStringsArray, ...values: unknown[]): any;
